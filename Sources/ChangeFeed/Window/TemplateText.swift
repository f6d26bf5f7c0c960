/// A statement that is cut up once and put together often: a name stands between at signs where a part goes.
enum TemplateText {
    /// Without its comments.
    static func code(of script: String) -> String {
        script.split(separator: "\n").filter { !$0.hasPrefix("--") }.joined(separator: "\n")
    }

    /// Text and names in turns.
    static func cut(_ text: String) -> [Substring] {
        text[...].split(separator: "@", omittingEmptySubsequences: false)
    }

    static func fill(_ pieces: [Substring], _ parts: [String: String]) -> String {
        var out = ""
        for (index, piece) in pieces.enumerated() {
            if index % 2 == 0 { out += piece } else { out += parts[String(piece), default: ""] }
        }
        return out
    }
}
