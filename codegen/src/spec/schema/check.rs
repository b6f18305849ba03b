//! Rules a well-formed signature must also follow.
