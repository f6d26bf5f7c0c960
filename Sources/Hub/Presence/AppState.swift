/// What a client's app is doing, as it says itself: how long it may be cut off before others hear of it depends on it.
///
/// The names are those of iOS (`UIApplication.State`): a phone that locks becomes inactive, one that shows another app puts
/// this one in the background, and the system pauses its network in both.
package enum AppState: String, Sendable, CaseIterable {
    case active
    case inactive
    case background
}
