/// The presence of a member that was cut off: it counts until its window ends, or until its client comes back for it.
package struct PresenceLease: Sendable {
    /// What it was tracked as.
    package let member: MemberID
    package let place: Place
    package let key: String
    package let appState: AppState?
    /// Who says that it is over, if it comes to that.
    package let loop: Int
    /// In monotonic milliseconds.
    package internal(set) var until: Int64
    /// A client of this user has joined and is about to say who it is.
    var isExpected = false

    /// Whom a lease may go to.
    package struct Place: Hashable, Sendable {
        package let channel: ChannelKey
        /// The claim `sub`.
        package let user: String?
        /// The client's own key; nil where the hub made one, so that the user alone tells.
        package let key: [UInt8]?
    }
}
