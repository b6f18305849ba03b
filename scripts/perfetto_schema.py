"""Checks a trace in Perfetto's binary format by Perfetto's own schema, from its package `perfetto`.

Every field must be known to the schema, every number of interned data resolved, slices of a track nest, and arrows and
counters have their tracks. Prints what it found.
"""

import collections
import sys

from google.protobuf import unknown_fields
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

SLICE_BEGIN, SLICE_END, COUNTER = (
    schema.TrackEvent.TYPE_SLICE_BEGIN,
    schema.TrackEvent.TYPE_SLICE_END,
    schema.TrackEvent.TYPE_COUNTER,
)


def refuse_unknown(message, path="Trace"):
    """Fields that the schema does not have are kept by its parser as unknown ones."""
    unknown = unknown_fields.UnknownFieldSet(message)
    assert len(unknown) == 0, f"{path}: field {unknown[0].field_number} is not in the schema"
    for field, value in message.ListFields():
        if field.message_type is not None:
            values = value if field.is_repeated else [value]
            for inner in values:
                refuse_unknown(inner, f"{path}.{field.name}")


def main(path):
    trace = schema.Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    refuse_unknown(trace)
    names, categories, annotations, texts = {}, {}, {}, {}
    tracks, open_slices, counts = {}, collections.defaultdict(list), collections.Counter()
    flows = collections.Counter()
    last = collections.defaultdict(int)
    for packet in trace.packet:
        assert packet.trusted_packet_sequence_id == 1
        for table, rows in [
            (names, packet.interned_data.event_names),
            (categories, packet.interned_data.event_categories),
            (annotations, packet.interned_data.debug_annotation_names),
        ]:
            table.update((row.iid, row.name) for row in rows)
        texts.update((row.iid, row.str) for row in packet.interned_data.debug_annotation_string_values)
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        assert packet.sequence_flags & schema.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        assert event.track_uuid in tracks, f"track {event.track_uuid} has no descriptor"
        assert packet.timestamp >= last[event.track_uuid], "events of a track are not in their order"
        last[event.track_uuid] = packet.timestamp
        counts[event.type] += 1
        if event.type == SLICE_BEGIN:
            assert names[event.name_iid] and all(categories[iid] for iid in event.category_iids)
            for annotation in event.debug_annotations:
                assert annotations[annotation.name_iid]
                kind = annotation.WhichOneof("value")
                assert kind == "uint_value" or texts[annotation.string_value_iid] is not None, kind
            open_slices[event.track_uuid].append(packet.timestamp)
            flows.update(event.flow_ids)
            flows.update(event.terminating_flow_ids)
        elif event.type == SLICE_END:
            assert packet.timestamp >= open_slices[event.track_uuid].pop()
        else:
            assert event.type == COUNTER and tracks[event.track_uuid].HasField("counter"), event
    assert not any(open_slices.values()), "a slice does not end"
    assert counts[SLICE_BEGIN] == counts[SLICE_END] > 0
    assert flows and set(flows.values()) == {2}, "an arrow without one of its ends"
    assert any(track.HasField("thread") for track in tracks.values())
    print(f"{counts[SLICE_BEGIN]} slices, {len(flows)} arrows, {counts[COUNTER]} values of memory: as the schema says")


if __name__ == "__main__":
    main(sys.argv[1])
