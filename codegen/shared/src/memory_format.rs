//! Memory formats by the names of signatures and by those of Rust.
//!
//! In: nothing. Out: an enum and its names. Must not know tensors.

/// The order of a new tensor's dimensions in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum MemoryFormat {
    /// Row-major.
    #[default]
    Contiguous,
    /// As the input's if it has no gaps or overlaps, else row-major.
    Preserve,
    /// Channels innermost, for four dimensions (N, C, H, W).
    ChannelsLast,
    /// Channels innermost, for five dimensions (N, C, D, H, W).
    ChannelsLast3d,
}

impl MemoryFormat {
    /// The names in signatures, which are PyTorch's.
    pub const NAMES: [(&'static str, MemoryFormat); 4] = [
        ("contiguous_format", MemoryFormat::Contiguous),
        ("preserve_format", MemoryFormat::Preserve),
        ("channels_last", MemoryFormat::ChannelsLast),
        ("channels_last_3d", MemoryFormat::ChannelsLast3d),
    ];

    /// The format of that name in signatures, e.g. `contiguous_format`.
    pub fn from_name(name: &str) -> Option<MemoryFormat> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
    }

    /// The variant's name.
    pub const fn ident(self) -> &'static str {
        match self {
            MemoryFormat::Contiguous => "Contiguous",
            MemoryFormat::Preserve => "Preserve",
            MemoryFormat::ChannelsLast => "ChannelsLast",
            MemoryFormat::ChannelsLast3d => "ChannelsLast3d",
        }
    }
}
