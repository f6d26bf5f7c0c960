/// What somebody wrote, as an error quotes it: on one line, and not for ever.
enum Quotation {
    private static let longest = 80

    static func of(_ text: String) -> String {
        var out = ""
        for scalar in text.unicodeScalars.prefix(longest) {
            switch scalar {
            case "\n": out += "\\n"
            case "\t": out += "\\t"
            case _ where scalar.properties.generalCategory == .control: out += "\u{FFFD}"
            default: out.unicodeScalars.append(scalar)
            }
        }
        return text.unicodeScalars.count > longest ? out + "…" : out
    }
}
