/// Which of Apple's two services a token belongs to. A token of one is a bad token at the other.
package enum PushEnvironment: String, Sendable, CaseIterable {
    /// Apps that were installed from Xcode.
    case sandbox
    /// The App Store's and TestFlight's.
    case production
}
