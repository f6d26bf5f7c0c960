/// What goes through the buffer of a change sequence.
package enum ChangeSignal: Sendable {
    case change(RowChange)
    /// The hub could not resume: the data has to be loaded again.
    case expired(reason: String)
}
