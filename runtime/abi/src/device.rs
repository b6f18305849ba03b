//! The device of a call, and the stream that its caller names there.
//!
//! In: kinds and numbers of devices, as DLPack has them, and the handle of a stream. Out: devices of the runtime, and a guard during which
//! this thread's work on the device is in that stream.

use std::fmt;

use opsmith_core::abi::{DEVICES, DeviceKind};
use opsmith_runtime::Device;
use opsmith_runtime::backend::{self, ForeignStream, Queue, StreamId};
use opsmith_runtime::error::Error;

use crate::failure::{Outcome, mistake};
use crate::structures;

/// The kind and the number of a device.
pub fn numbers(device: Device) -> (i32, i32) {
    (DeviceKind::of(device.backend) as i32, i32::from(device.index))
}

/// The device of a kind and a number.
fn device(kind: i32, number: i32, name: fmt::Arguments<'_>) -> Outcome<Device> {
    let Some(known) = DeviceKind::from_number(kind) else {
        let kinds: Vec<String> =
            DEVICES.iter().map(|(_, number, meaning)| format!("{number} ({meaning})")).collect();
        return mistake(format!(
            "{name} is on a device of the kind {kind}, number {number}; the kinds are {}",
            kinds.join(", ")
        ));
    };
    match (known, u16::try_from(number)) {
        (DeviceKind::Host, _) => Ok(Device::CPU),
        (known, Ok(index)) => Ok(Device { backend: known.backend(), index }),
        _ => mistake(format!("{name} is on a device of the kind {kind} with the impossible number {number}")),
    }
}

/// The stream that a caller names; none if all tensors are the host's.
#[derive(Clone, Copy)]
pub struct CallStream(Option<(Device, StreamId)>);

impl CallStream {
    /// The host alone.
    pub const HOST: CallStream = CallStream(None);

    /// Reads the stream of a call.
    ///
    /// # Safety
    /// The pointer leads to a structure of the header, or is null.
    pub unsafe fn read(stream: *const structures::Stream) -> Outcome<CallStream> {
        // SAFETY: the caller's promise.
        let Some(given) = (unsafe { stream.as_ref() }) else { return Ok(CallStream::HOST) };
        let device = device(given.device_type, given.device_id, format_args!("`stream`"))?;
        if device == Device::CPU {
            return Ok(CallStream::HOST);
        }
        if backend::of(device).is_err() {
            let (kind, number) = (given.device_type, given.device_id);
            return Err(Error::device(format!(
                "this library has no runtime for {device}, a device of the kind {kind}, number {number}"
            ))
            .with_help(format!(
                "build it with the feature `{}` of `opsmith`, or use tensors of the host",
                device.backend.name()
            ))
            .into());
        }
        Ok(CallStream(Some((device, StreamId(given.handle.expose_provenance() as u64)))))
    }

    /// Enters the stream.
    ///
    /// # Errors
    /// If the device does not exist, or the stream's work is being recorded.
    ///
    /// # Safety
    /// The handle is that of a stream of the device, and stays valid.
    pub unsafe fn enter(self) -> Outcome<Entered> {
        // SAFETY: the caller's promise.
        let enter = |(device, stream)| unsafe { ForeignStream::enter(device, stream) };
        Ok(Entered(self.0.map(enter).transpose()?))
    }

    /// The device of a tensor that is given, which is the host or that of the stream.
    pub fn device_of(self, kind: i32, number: i32, name: fmt::Arguments<'_>) -> Outcome<Device> {
        let device = device(kind, number, name)?;
        self.check(device, name)?;
        Ok(device)
    }

    /// Refuses a tensor on another device than the host and that of the stream.
    pub fn check(self, device: Device, name: fmt::Arguments<'_>) -> Outcome<()> {
        match self.0 {
            _ if device == Device::CPU => Ok(()),
            Some((known, _)) if known == device => Ok(()),
            Some((known, _)) => {
                Err(Error::device(format!("{name} is on {device}, and the call's stream is of {known}"))
                    .with_help("a call has tensors of the host and of one device")
                    .into())
            }
            None => {
                let (kind, number) = numbers(device);
                mistake(format!(
                    "{name} is on a device of the kind {kind}, number {number}, and the call names no stream of it\n  help: set \
                     `stream` of `opsmith_outputs`"
                ))
            }
        }
    }

    /// The stream in which the caller uses memory of a device.
    pub fn queue_of(self, device: Device) -> Option<Queue> {
        let (known, stream) = self.0?;
        (known == device).then_some(Queue { device: device.index, stream })
    }
}

/// This thread's work is in the stream of a call until this is dropped.
pub struct Entered(Option<ForeignStream>);

impl Entered {
    /// Leaves the stream of a call that succeeded.
    ///
    /// # Errors
    /// Errors of work that was held back.
    pub fn leave(self) -> Outcome<()> {
        Ok(self.0.map_or(Ok(()), ForeignStream::leave)?)
    }
}
