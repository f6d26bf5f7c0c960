/// What a row is known by.
///
/// Sendable, because a value can only be made from a Sendable one, which nobody can change afterwards.
package struct RowIdentity: Hashable, @unchecked Sendable {
    private let value: AnyHashable

    package init(_ value: some Hashable & Sendable) { self.value = AnyHashable(value) }
}
