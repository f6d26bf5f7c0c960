/// The operator's word on a table that whether a user may see a row depends on one column alone (`roost watch --scope`).
///
/// It lets the hub keep answers of policies. It is held against what the catalog says of the policies (`DeclaredScope`),
/// and against what they really read whenever they are asked; it counts for nothing where that is more.
package struct Scope: Sendable, Equatable {
    package let column: String
    /// The tables that decide who may see what; answers are dropped when one of them changes.
    package let members: Set<UInt32>
}
