/// A piece of HTML or SVG. Text that is put into it is escaped: only literals and other pieces are taken as they are.
struct Markup: ExpressibleByStringInterpolation, ExpressibleByStringLiteral {
    let source: String

    init(stringLiteral literal: String) { source = literal }

    init(stringInterpolation pieces: Pieces) { source = pieces.source }

    /// Trusts `source`: what was made of numbers, or stands in this program.
    init(trusted source: String) { self.source = source }

    static func escaped(_ text: String) -> String {
        var escaped = ""
        for character in VisibleText.of(text).unicodeScalars {
            switch character {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            default: escaped.unicodeScalars.append(character)
            }
        }
        return escaped
    }

    struct Pieces: StringInterpolationProtocol {
        fileprivate var source = ""

        init(literalCapacity: Int, interpolationCount: Int) { source.reserveCapacity(literalCapacity) }

        mutating func appendLiteral(_ literal: String) { source += literal }
        mutating func appendInterpolation(_ text: String) { source += Markup.escaped(text) }
        mutating func appendInterpolation(_ number: Int) { source += String(number) }
        /// A coordinate: a tenth of a unit is finer than any screen.
        mutating func appendInterpolation(_ number: Double) { source += Decimal.text(number, digits: 1) }
        mutating func appendInterpolation(_ piece: Markup) { source += piece.source }
        mutating func appendInterpolation(_ pieces: [Markup]) { for piece in pieces { source += piece.source } }
    }
}
