/// One run of one hub: the name that its operator gave it, and the number that it drew when its process started.
///
/// A hub that was restarted has its name and another boot, so that what its earlier process left behind (messages in the
/// log, members, a lease) is never taken for its own.
package struct HubIdentity: Hashable, Comparable, Sendable {
    package let name: String
    package let boot: UInt64

    /// Nil where the name is none that a hub may have.
    package init?(name: String, boot: UInt64) {
        guard Self.isName(name.utf8) else { return nil }
        self.name = name
        self.boot = boot
    }

    /// By name, then by boot.
    package static func < (left: HubIdentity, right: HubIdentity) -> Bool {
        left.name == right.name ? left.boot < right.boot : left.name < right.name
    }

    /// A name that was checked before.
    init(checked name: String, boot: UInt64) {
        self.name = name
        self.boot = boot
    }

    /// Whether a hub may have this name: 1 to 64 letters, digits, dots, underscores and hyphens of ASCII. It is a part of
    /// keys and channels of Redis, of metrics and of log lines, and so it has nothing that means something in one of them.
    package static func isName(_ name: some Collection<UInt8>) -> Bool {
        (1...64).contains(name.count)
            && name.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
                    true
                default: false
                }
            }
    }
}
