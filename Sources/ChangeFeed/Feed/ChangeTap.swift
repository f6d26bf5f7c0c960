import Hub
package import Matching

/// Somebody beside the subscribers who is handed changes, and may not lose any when the hub is killed: push.
///
/// It takes them without waiting and settles them later, on a thread of its own. The place to go on from that the feed
/// stores never passes what is not settled, so whatever a killed hub had taken and not settled comes again.
package protocol ChangeTap: AnyObject, Sendable {
    /// On the feed's thread; must not wait.
    func take(_ changes: [RowChange])

    /// How many changes it took, and how many of these, counted from the first, are settled. From any thread.
    var taken: Int { get }
    var settled: Int { get }
}
