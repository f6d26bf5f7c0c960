/// What is wrong with a template, and where.
package struct TemplateError: Error, Equatable, CustomStringConvertible {
    /// Where the template is wrong, such as `character 12` or `the value of "sender", character 3`.
    package let place: String
    /// One sentence that says what to write instead.
    package let problem: String

    package var description: String { "\(place): \(problem)" }

    func inside(_ outer: String) -> TemplateError { TemplateError(place: "\(outer), \(place)", problem: problem) }
}
