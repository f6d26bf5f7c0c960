/// One member's recovery; never used twice.
package struct RecoveryID: Hashable, Sendable {
    package let loop: Int
    package let serial: Int

    package init(loop: Int, serial: Int) {
        self.loop = loop
        self.serial = serial
    }
}

/// What a member missed: the changes that its group asked for, as far as these claims may see them today.
package struct RecoveryQuestion: Sendable {
    package let group: ChangeGroupID
    package let claims: Claims
    package let from: RecoveryPoint

    package init(group: ChangeGroupID, claims: Claims, from: RecoveryPoint) {
        self.group = group
        self.claims = claims
        self.from = from
    }
}
