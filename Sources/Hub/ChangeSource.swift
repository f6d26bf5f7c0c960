/// Where row changes come from, as the loops see it. Called on their threads; must not wait.
package protocol ChangeSource: Sendable {
    func subscribe(_ id: ChangeGroupID, _ subscription: ChangeSubscription)
    func unsubscribe(_ id: ChangeGroupID)
    /// Whom the group's policies are asked about. What commits after this call is judged for them, too.
    func admit(_ claims: Claims, to id: ChangeGroupID)
    func withdraw(_ claims: Claims, from id: ChangeGroupID)
    /// Asks for what a member missed. Its group is live, and its claims were admitted.
    func recover(_ id: RecoveryID, _ question: RecoveryQuestion)
    /// The member is gone; steps that are under way are ignored.
    func abandon(_ id: RecoveryID)
}

/// Where row changes go, as the feed sees it. Called on the feed's thread; must not wait.
package protocol ChangeSink: Sendable {
    var loopCount: Int { get }
    /// Hands a loop what was read. `whenTaken` is called, on the loop's thread, once its sockets have taken them or were
    /// given their chance: the feed reads large windows no faster than that.
    func deliver(_ events: [FeedEvent], to loop: Int, whenTaken: @escaping @Sendable () -> Void)
    func changeSubscription(_ id: ChangeGroupID, is outcome: ChangeSubscriptionOutcome)
    /// Steps of one member's recovery, in order with what is delivered to its loop.
    func recovery(_ id: RecoveryID, _ steps: [RecoveryStep], whenTaken: @escaping @Sendable () -> Void)
    func feed(isReady: Bool)
}
