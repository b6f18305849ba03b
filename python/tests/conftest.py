"""A choice of tests: with ``OPSMITH_EVERY=8``, every eighth of those that differ by their parameters alone, where there are many."""

import os

MANY = 40


def pytest_collection_modifyitems(config, items):
    every = int(os.environ.get("OPSMITH_EVERY", "1"))
    places, groups = {}, {}
    for item in items:
        group = (item.path, getattr(item, "originalname", item.name))
        places[item] = groups.get(group, 0)
        groups[group] = places[item] + 1

    def chosen(item):
        many = groups[item.path, getattr(item, "originalname", item.name)] > MANY
        return not many or places[item] % every == 0

    left_out = [item for item in items if not chosen(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if chosen(item)]
