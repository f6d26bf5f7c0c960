/// How far a command has come.
package struct AdminProgress: Sendable, Equatable {
    /// What it does: `watching public.messages`.
    package var task: String
    /// Steps that are done, where there are several.
    package var done = 0
    package var total = 0
    /// What it waits for, or what its statement is at.
    package var detail: String?

    package init(_ task: String) { self.task = task }

    /// Whoever wants to know; called on the command's thread, now and then.
    package typealias Listener = (AdminProgress) -> Void
}
