/// One member of one channel; unique among the loops of a process.
///
/// What it tracked goes by it, too. A presence may outlive its member: whoever takes it over goes by the same id.
package struct MemberID: Hashable, Sendable {
    package let loop: Int
    package let serial: Int

    package init(loop: Int, serial: Int) {
        self.loop = loop
        self.serial = serial
    }
}
