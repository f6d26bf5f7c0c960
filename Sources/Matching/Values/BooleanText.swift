/// The spellings of a boolean that Postgres accepts.
enum BooleanText {
    /// Any beginning of true, false, yes and no, of on and off where it tells them apart, and 1 and 0; in either case.
    static func parse(_ text: ArraySlice<UInt8>) -> Bool? {
        guard !text.isEmpty, text.count <= 5 else { return nil }
        let word = String(decoding: text, as: UTF8.self).lowercased()
        switch word {
        case "1", "on": return true
        case "0", "of", "off": return false
        default: break
        }
        if "true".hasPrefix(word) || "yes".hasPrefix(word) { return true }
        if "false".hasPrefix(word) || "no".hasPrefix(word) { return false }
        return nil
    }
}
