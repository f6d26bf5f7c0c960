/// Why nothing could be measured, as one sentence.
struct MicroFailure: Error, CustomStringConvertible {
    let description: String

    init(_ sentence: String) { description = sentence }
}
