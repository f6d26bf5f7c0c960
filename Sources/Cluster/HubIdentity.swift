/// One run of one hub: the name its operator gave it, and a number drawn when its process started.
///
/// A restarted hub keeps its name and has another boot, so it never mistakes what its earlier process left behind
/// (messages in the log, members, a lease) for its own.
package struct HubIdentity: Hashable, Comparable, Sendable {
    package let name: String
    package let boot: UInt64

    /// Nil if the name is not a valid hub name.
    package init?(name: String, boot: UInt64) {
        guard Self.isValidName(name.utf8) else { return nil }
        self.name = name
        self.boot = boot
    }

    /// Orders by name, then by boot.
    package static func < (left: HubIdentity, right: HubIdentity) -> Bool {
        left.name == right.name ? left.boot < right.boot : left.name < right.name
    }

    /// For a name that is known to be valid.
    init(checked name: String, boot: UInt64) {
        self.name = name
        self.boot = boot
    }

    /// Whether a hub may have this name: 1 to 64 ASCII letters, digits, dots, underscores and hyphens. The name becomes
    /// part of Redis keys and channels, metrics and log lines, so it contains nothing that has a meaning in any of them.
    package static func isValidName(_ name: some Collection<UInt8>) -> Bool {
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
