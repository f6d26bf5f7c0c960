extension Frame {
    /// Nil for one that the hub does not make.
    package var opcode: Opcode? { Opcode(rawValue: bytes[0] & 0x0F) }

    /// What stands behind the header.
    package var payload: ArraySlice<UInt8> {
        switch bytes[1] {
        case 126: bytes[4...]
        case 127: bytes[10...]
        default: bytes[2...]
        }
    }
}
