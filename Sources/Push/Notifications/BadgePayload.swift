package import Hub
import Wire

/// A push that shows nothing but a number on an app's icon.
package struct BadgePayload: Sendable {
    private let badge: Int

    package init(_ badge: Int) { self.badge = badge }

    /// Nil where there is no such push: what a browser is sent, it has to show.
    package func bytes(for kind: PushKind) -> [UInt8]? {
        switch kind {
        case .apns: JSONWriter.object { whole in whole.object("aps") { $0.member("badge", badge) } }
        // Android has no number that a server could set: the app hears it, and takes away what is read.
        case .fcm: JSONWriter.object { message in message.object("data") { $0.member("badge", String(badge)) } }
        case .web: nil
        }
    }
}
