import Hub
import Testing
import Wire

/// `Authorization` by itself: what the policies are asked about members of a private channel, and what their answers mean.
@Suite struct AuthorizationTests {
    private static let hello = MemberWrite.broadcast(.text(Array("{}".utf8)))
    private static let ann = Stage.claims(subject: "ann")
    private static let renewed = Stage.claims(subject: "ann", expiresAt: 20_000)
    private var stage = FeatureStage(isPrivate: true)
    private var authorization = Authorization()

    private mutating func join(_ config: String = #"{"private":true}"#) throws -> (Membership, ChannelGrants) {
        let member = stage.member(1, Self.ann, try stage.config(config))
        authorization.askToRead(member, &stage.hub)
        return (member, try #require(member.grants))
    }

    /// A member that may read, and whose join is answered.
    private mutating func letIn(reading read: ChannelExtensions = .all) throws -> (Membership, ChannelGrants) {
        let (member, grants) = try join(#"{"private":true,"broadcast":{"ack":true}}"#)
        _ = try answer(.decided(read))
        member.isLetIn()
        return (member, grants)
    }

    /// Answers the only question that is open; what it means, in words.
    private mutating func answer(_ outcome: AuthorizationOutcome) throws -> String? {
        try #require(authorization.questions.count == 1)
        let id = try #require(authorization.questions.keys.first)
        return authorization.receiveAnswer(outcome, to: id, &stage.hub).map { Self.word($0.1) }
    }

    private static func word(_ decision: Authorization.Decision) -> String {
        switch decision {
        case .reading(.met(.authorization)): "may read"
        case .unknown: "unknown"
        case .waits: "waits"
        case .reading(.failed(.authorization, let refusal)): refusal.message
        case .reading: "something else"
        case .renewed(let claims): "renewed until \(claims.expiresAt)"
        case .revoked: "revoked"
        case .writes: "writes"
        }
    }

    private mutating func write(
        _ member: Membership, _ write: MemberWrite = hello, ref: String = "1", limits: HubLimits = HubLimits()
    ) throws -> String {
        let grants = try #require(member.grants)
        let ref = JSON(trusted: Array(ref.utf8)[...])
        return switch authorization.admitWrite(write, ref: ref, grants, of: member, limits) {
        case .performed: "performed"
        case .held: "held"
        case .refused(let refusal): refusal.message
        }
    }

    /// The refs of the writes that can go on, behind the reason of one that is refused.
    private mutating func release(_ member: Membership) -> [String] {
        var released: [String] = []
        while let (entry, refusal) = authorization.nextWrite(of: member, &stage.hub) {
            released.append((refusal.map { "\($0.message) " } ?? "") + entry.ref.description)
        }
        return released
    }

    // MARK: Reading

    @Test mutating func nothingMayBeReadBeforeTheAnswer() throws {
        let (member, _) = try join()
        #expect(try stage.done() == ["authorize anon read a"])
        #expect(!member.mayRead(.broadcast) && !member.mayRead(.presence))
        #expect(try answer(.decided(.broadcast)) == "may read")
        #expect(member.mayRead(.broadcast) && !member.mayRead(.presence))
        #expect(authorization.questions.isEmpty)
    }

    @Test(arguments: [
        (AuthorizationOutcome.decided([]), Refusal.unauthorized(topic: "a")),
        (.failed(.error), .channelPolicyFailed(.error)), (.failed(.canceled), .channelPolicyFailed(.canceled)),
        (.decided(.presence), .unauthorized(topic: "a")),
        (.unavailable, .databaseUnavailable),
        (.replayFailed, .replayFailed),
    ])
    mutating func whatIsNoYesIsANo(_ outcome: AuthorizationOutcome, _ refusal: Refusal) throws {
        let replay = #"{"private":true,"broadcast":{"replay":{"since":1}}}"#
        let (member, _) = try join(replay)
        #expect(try answer(outcome) == refusal.message)
        #expect(!member.mayRead(.broadcast))
    }

    @Test mutating func anAnswerThatNobodyWaitsForChangesNothing() throws {
        let (member, _) = try join()
        let id = try #require(stage.asked.first)
        authorization.discardPending(of: member)
        #expect(authorization.questions.isEmpty)
        #expect(authorization.receiveAnswer(.decided(.all), to: id, &stage.hub) == nil)
        #expect(!member.mayRead(.broadcast))
        let (gone, _) = try join()
        _ = gone.join.handleEvent(.removed)
        #expect(try answer(.decided(.all)) == nil)
    }

    // MARK: Writing

    @Test mutating func writesWaitInOrderForOneAnswer() throws {
        let (member, _) = try letIn()
        _ = try stage.done()
        #expect(try write(member, ref: "1") == "held")
        #expect(try write(member, ref: "2") == "held")
        #expect(release(member) == [])
        #expect(release(member) == [])
        #expect(try stage.done() == ["authorize anon write a"])
        #expect(authorization.heldBytes == 6)
        #expect(try answer(.decided(.broadcast)) == "writes")
        #expect(try write(member, ref: "3") == "held", "what waits goes first")
        #expect(release(member) == ["1", "2", "3"])
        #expect(authorization.heldBytes == 0)
        #expect(try write(member) == "performed")
        #expect(try stage.done() == [])
    }

    @Test mutating func aNoHoldsAsLongAsTheToken() throws {
        let (member, _) = try letIn()
        #expect(try write(member) == "held")
        #expect(release(member) == [])
        _ = try answer(.decided([]))
        let denial = Refusal.writeUnauthorized(topic: "a").message
        #expect(release(member) == ["\(denial) 1"])
        #expect(try write(member) == denial)
        #expect(try write(member, .track([])) == "held", "it is another right")
        #expect(authorization.questions.isEmpty)
    }

    /// supabase/realtime 2.174 answers `rls_policy_error` and `query_canceled`.
    @Test(arguments: PolicyFault.allCases)
    mutating func aNoOfAPolicyThatFailedIsToldAsThat(_ fault: PolicyFault) throws {
        let (member, _) = try letIn()
        #expect(try write(member) == "held")
        #expect(release(member) == [])
        _ = try answer(.failed(fault))
        let denial = Refusal.channelPolicyFailed(fault).message
        #expect(release(member) == ["\(denial) 1"])
        #expect(try write(member) == denial, "it is not asked again for each")
    }

    @Test mutating func whatIsNotKnownIsRefusedAndAskedAgain() throws {
        let (member, _) = try letIn()
        _ = try write(member)
        _ = release(member)
        _ = try stage.done()
        #expect(try answer(.unavailable) == "writes")
        let told = try stage.done()
        #expect(told.count == 1 && told[0].contains("UnableToConnectToProject"))
        #expect(authorization.heldBytes == 0)
        _ = try write(member)
        _ = release(member)
        #expect(try stage.done() == ["authorize anon write a"])
    }

    @Test mutating func whoIsNotInYetWritesLater() throws {
        let (member, _) = try join()
        #expect(try write(member, .untrack) == "held")
        #expect(release(member) == [])
        _ = try answer(.decided(.all))
        member.isLetIn()
        #expect(release(member) == ["1"], "nobody is asked who withdraws what is its own")
        #expect(try write(member, .untrack) == "performed")
    }

    @Test mutating func whatWaitsIsBounded() throws {
        let (member, _) = try letIn()
        var limits = HubLimits()
        limits.heldPerMember = 2
        #expect(try write(member, limits: limits) == "held")
        #expect(try write(member, limits: limits) == "held")
        #expect(try write(member, limits: limits) == Refusal.writesPending.message)
        limits.heldPerMember = 100
        limits.payloadBytes = 8
        #expect(try write(member, limits: limits) == Refusal.writesPending.message, "3 bytes each")
        limits.payloadBytes = 9
        #expect(try write(member, limits: limits) == "held")
        (limits.payloadBytes, limits.heldBytes) = (100, 11)
        #expect(try write(member, limits: limits) == Refusal.writesPending.message, "of all members")
        authorization.discardPending(of: member)
        #expect(authorization.heldBytes == 0)
    }

    // MARK: Tokens

    @Test mutating func aNewTokenIsJudgedWhileTheOldOneHolds() throws {
        let (member, grants) = try letIn(reading: .broadcast)
        _ = try write(member)
        _ = release(member)
        let old = try #require(stage.asked.last)
        #expect(authorization.renewGrants(grants, as: Self.renewed, of: member, &stage.hub) == .asked)
        #expect(member.claims === Self.ann && member.mayRead(.broadcast))
        #expect(authorization.receiveAnswer(.decided(.all), to: old, &stage.hub) == nil, "it was about the old token")
        #expect(try answer(.decided(.all)) == "renewed until 20000")
        #expect(member.mayRead(.presence))
        member.claims = Self.renewed
        _ = try stage.done()
        #expect(release(member) == [])
        #expect(try stage.done() == ["authorize anon write a"], "the right to write is asked anew")
    }

    @Test mutating func aTokenThatTakesARightAwayRevokes() throws {
        let (member, grants) = try letIn(reading: .all)
        _ = authorization.renewGrants(grants, as: Self.renewed, of: member, &stage.hub)
        #expect(try answer(.decided(.broadcast)) == "revoked")
    }

    @Test mutating func theTokenOfBeforeTakesTheQuestionBack() throws {
        let (member, grants) = try letIn()
        #expect(authorization.renewGrants(grants, as: Self.ann, of: member, &stage.hub) == .asked)
        #expect(authorization.questions.isEmpty, "it says what the one before said")
        _ = authorization.renewGrants(grants, as: Self.renewed, of: member, &stage.hub)
        #expect(authorization.renewGrants(grants, as: Self.ann, of: member, &stage.hub) == .takenBack)
        #expect(authorization.questions.isEmpty)
    }

    @Test mutating func whoIsNotDecidedJoinsAnew() throws {
        let (member, grants) = try join()
        #expect(authorization.renewGrants(grants, as: Self.renewed, of: member, &stage.hub) == .joinsAnew)
        #expect(authorization.questions.isEmpty)
    }
}
