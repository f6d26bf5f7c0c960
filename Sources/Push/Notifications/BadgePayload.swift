package import Hub
import Wire

/// A push that only changes the number on an app's icon.
package struct BadgePayload: Sendable {
    private let badge: Int

    package init(_ badge: Int) { self.badge = badge }

    /// Returns nil if there is no such push: a browser has to show whatever it is sent.
    package func bytes(for kind: PushKind) -> [UInt8]? {
        switch kind {
        case .apns: JSONWriter.object { whole in whole.object("aps") { $0.writeMember("badge", badge) } }
        // Android has no number that a server could set: the app gets the number, and removes what is read.
        case .fcm: JSONWriter.object { message in message.object("data") { $0.writeMember("badge", String(badge)) } }
        case .web: nil
        }
    }
}
