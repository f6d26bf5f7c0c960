import Cluster
import Hub
import Redis

/// The link with Redis: requests, replies and messages.
extension ClusterWorker {
    /// The interval between beats, and how long a hub keeps its name after the last of them.
    static var beatInterval: Duration { .milliseconds(500) }
    static var leaseMilliseconds: Int64 { 3000 }

    mutating func handleEvent(_ event: LinkEvent, at now: Instant) {
        switch event {
        case .whole:
            setup.logger.info("Connected to Redis: \(setup.address)")
            // A hub that was away may have lost its name meanwhile.
            hasLease = false
            askForName(at: now)
        case .away(let failure): linkWasLost(because: "\(failure)", at: now)
        case .message(_, let bytes): receivePublished(bytes, at: now)
        case .reply(let tag, let value):
            guard let question = questions.removeValue(forKey: tag) else { return }
            receiveReply(question, value, at: now)
        case .lost(let tag): questions[tag] = nil
        case .pong(let tag):
            guard case .confirm(let head)? = questions.removeValue(forKey: tag) else { return }
            var actions: [LogReaderAction] = []
            reader.confirmHead(head, now: Self.milliseconds, &actions)
            performReaderActions(actions, at: now)
        }
    }

    private mutating func linkWasLost(because reason: String, at now: Instant) {
        questions.removeAll()
        (presenceQuestions, untakenPieces) = ([], 0)
        finishQuestions(peerQuestions.endAll(), at: now)
        peers.linkWasLost()
        let wasInLog = state.isInLog
        goAlone()
        let problem = "the other hubs cannot be reached: \(reason)"
        if statistics.problem != problem {
            setup.logger.warning("The other hubs cannot be reached, and this one goes on alone: \(reason)")
        }
        if wasInLog { statistics.disconnects += 1 }
        statistics.problem = problem
        if !isRefused { setup.report(problem) }
    }

    /// Nothing is written or read before the log is opened again, and messages on their way are not waited for.
    private mutating func goAlone() {
        reader.linkWasLost()
        writer.linkWasLost()
        setup.shared.userTally.reachesOthers(false)
        setup.shared.history.leaveLog(chance: .random(in: .min ... .max))
        var out: [ClusterState.Output] = []
        state.logIsAway(&out)
        performOutputs(out)
    }

    /// A link that accepts no more has too many unanswered requests. A request that was not sent is never answered, and
    /// would be waited for forever: the link is replaced at the end of the turn.
    mutating func requireSent(_ isSent: Bool) {
        if !isSent { isOverfull = true }
    }

    mutating func replaceOverfull(at now: Instant) {
        guard isOverfull else { return }
        isOverfull = false
        if link.isWhole { reconnect(because: "it leaves too much unanswered", at: now) }
    }

    // MARK: The name

    /// Takes the lease on the hub's name, or finds out which process holds it. Only the holder opens the log.
    mutating func askForName(at now: Instant) {
        nextBeat = now + Self.beatInterval
        let lease = keys.lease(of: setup.own.name)
        requireSent(
            link.queueCommand(
                ["SET", .text(lease), .text(String(setup.own.boot)), "PX", .integer(Self.leaseMilliseconds), "NX"],
                tag: newTag(.nothing), at: now))
        requireSent(link.queueCommand(["GET", .text(lease)], tag: newTag(.holder), at: now))
    }

    private mutating func updateLease(holder: UInt64?, at now: Instant) {
        guard let holder, !hasLease else { return }
        if holder == setup.own.boot {
            hasLease = true
            takenSince = nil
            if isRefused {
                setup.logger.notice("The name \(setup.own.name) is free again: this hub has joined the others.")
            }
            isRefused = false
            return openLog(at: now)
        }
        if takenSince?.holder != holder { takenSince = (holder, now) }
        // By then the lease of a killed process has expired.
        guard let takenSince, now - takenSince.at > .milliseconds(Self.leaseMilliseconds + 500) else { return }
        nameIsTaken()
    }

    mutating func nameIsTaken() {
        guard !isRefused else { return }
        isRefused = true
        hasLease = false
        goAlone()
        setup.report("another hub of the cluster is called \(setup.own.name): give each a node.name of its own")
        setup.logger.error(
            "Another hub of the cluster is called \(setup.own.name), so this one stays alone. Give each a node.name of its own."
        )
    }

    // MARK: Opening

    mutating func openLog(at now: Instant) {
        openedAt = now
        let least = max(UInt64(max(0, Self.now.unix)), (reader.epoch ?? 0) + 1)
        requireSent(scripts.queueOpening(leastEpoch: least, on: link, tag: newTag(.open), at: now))
    }

    private mutating func logOpened(_ value: RedisValue, at now: Instant) {
        // The log was requested before the name was lost.
        guard hasLease else { return }
        do throws(LogRefusal) {
            let opening = try LogScripts.parseOpening(value)
            let head = LogHead(
                place: LogPlace(epoch: opening.head.epoch, offset: opening.head.offset), tag: opening.tag,
                older: opening.older.map { LogPlace(epoch: $0.epoch, offset: $0.offset) })
            peers.linkBecameWhole(epoch: head.place.epoch, at: Self.milliseconds)
            // Stays closed until it is known which of this hub's messages the log has.
            writer.linkWasLost()
            var actions: [LogReaderAction] = []
            reader.logOpened(head, now: Self.milliseconds, &actions)
            performReaderActions(actions, at: now)
        } catch {
            reconnect(because: "it cannot open the log (\(error))", at: now)
        }
    }

    mutating func reconnect(because reason: String, at now: Instant) {
        for event in link.reconnect(because: RedisFailure(.refusal, reason), at: now) { handleEvent(event, at: now) }
    }

    // MARK: Reading

    private mutating func receivePublished(_ bytes: [UInt8], at now: Instant) {
        var actions: [LogReaderAction] = []
        switch PublishedMessage.decode(bytes[...]) {
        case .value(.entry(let entry)): reader.receivePublished(entry, now: Self.milliseconds, &actions)
        case .value(.beat(let beat)):
            reader.receiveBeat(beat, now: Self.milliseconds, &actions)
            var found: [PeerTableAction] = []
            peers.receiveBeat(beat, at: Self.milliseconds, &found)
            performPeerActions(found, at: now)
        case .value(.direct(let message)): reader.receiveDirect(message, &actions)
        case .unknownVersion: break
        // A beat or another entry reveals what is missing.
        case .malformed: damagedLines += 1
        }
        performReaderActions(actions, at: now)
    }

    mutating func performReaderActions(_ actions: [LogReaderAction], at now: Instant) {
        for action in actions {
            switch action {
            case .apply(let messages): applyMessages(messages)
            case .fetch(let fetch):
                let place = LogEntryID(epoch: fetch.after.epoch, offset: fetch.after.offset)
                requireSent(
                    scripts.queueReading(
                        after: place, count: fetch.count, on: link, tag: newTag(.fetch(fetch)), at: now))
            case .tellGap(let gap): reportGap(gap)
            case .forked: setup.shared.history.recordLoss(at: Self.now)
            case .reopen:
                // A new connection may help if opening again did not.
                if let openedAt, now - openedAt < .seconds(1) {
                    reconnect(because: "its log is not the one that was opened", at: now)
                } else {
                    openLog(at: now)
                }
            case .caughtUp(let caughtUp): readerCaughtUp(caughtUp, at: now)
            case .deliver(let message): receiveDirect(message, at: now)
            case .stale(let message): dropStale(message, at: now)
            case .compareDigest(let hub, _, let digest):
                // A transfer is already under way.
                guard pulls[hub] == nil else { continue }
                var found: [PeerTableAction] = []
                let own = state.digest(of: hub.boot)
                peers.compareDigest(
                    hub, isEqual: own == digest, hasCopy: own != 0, at: Self.milliseconds, &found)
                performPeerActions(found, at: now)
            }
        }
    }

    /// An answer that no longer fits into its sender's order of messages is useless: the question counts as unanswered.
    private mutating func dropStale(_ message: DirectMessage, at now: Instant) {
        do {
            guard case .answer(let id, _)? = try DirectPayload(message.payload),
                let done = peerQuestions.receiveAnswer(id, by: message.sender, with: nil)
            else { return }
            statistics.questionsUnanswered += 1
            finishQuestions([done], at: now)
        } catch {
            reportUnreadable(message.sender, at: now)
        }
    }

    private mutating func readerCaughtUp(_ caughtUp: LogCaughtUp, at now: Instant) {
        _ = setup.shared.history.advanceLog(
            history: caughtUp.place.epoch, entry: Int(caughtUp.place.offset) + 1, index: (1 << 20) - 1)
        guard !writer.isOpen else { return }
        var out: [ClusterState.Output] = []
        state.logIsOpen(&out)
        performOutputs(out)
        setup.shared.userTally.reachesOthers(true)
        var actions: [LogWriterAction] = []
        openedThrough = writer.lastSequence
        writer.logReopened(caughtUp.place, ownSequence: caughtUp.ownSequence, at: Self.milliseconds, &actions)
        performWriterActions(actions, at: now)
        statistics.problem = nil
        setup.report(nil)
        nextBeat = now
    }

    // MARK: Writing

    mutating func performWriterActions(_ actions: [LogWriterAction], at now: Instant) {
        for action in actions {
            switch action {
            case .publish(let publish):
                pace.callSent(publish.sequences.count, at: now)
                reader.sentThrough = writer.sentThrough
                let isSent = scripts.queuePublishing(
                    publish.batch, in: publish.epoch, entryTag: publish.tag, length: reader.length.entries, on: link,
                    tag: newTag(.publish), at: now)
                requireSent(isSent)
                if !isSent { writerFailed(.unknown, at: now) }
            case .reopen: openLog(at: now)
            case .dropped:
                var out: [ClusterState.Output] = []
                state.messagesAreLost(&out)
                performOutputs(out)
            }
        }
    }

    private mutating func writerFailed(_ failure: LogPublishFailure, at now: Instant) {
        var actions: [LogWriterAction] = []
        writer.publishFailed(failure, at: Self.milliseconds, &actions)
        performWriterActions(actions, at: now)
    }

    private mutating func receiveReply(_ question: ClusterQuestion, _ value: RedisValue, at now: Instant) {
        switch question {
        case .open: logOpened(value, at: now)
        case .publish:
            do throws(LogRefusal) {
                let offset = try LogScripts.parsePublished(value)
                guard let epoch = reader.epoch else { return }
                var actions: [LogWriterAction] = []
                writer.publishSucceeded(
                    LogPlace(epoch: epoch, offset: offset), at: Self.milliseconds, &actions)
                performWriterActions(actions, at: now)
            } catch .otherEpoch {
                writerFailed(.epoch, at: now)
            } catch {
                writerFailed(.unknown, at: now)
                reconnect(because: "it takes no messages (\(error))", at: now)
            }
        case .fetch(let fetch):
            do throws(LogRefusal) {
                let piece = try LogScripts.parsePiece(value)
                let entries = piece.entries.map {
                    LogEntry(
                        place: LogPlace(epoch: $0.id.epoch, offset: $0.id.offset), previous: $0.tagBefore, tag: $0.tag,
                        batch: $0.batch[...])
                }
                var actions: [LogReaderAction] = []
                reader.receiveFetched(
                    fetch.id, entries, reachedEnd: piece.isAtEnd, now: Self.milliseconds, &actions)
                performReaderActions(actions, at: now)
            } catch {
                reconnect(because: "its log cannot be read (\(error))", at: now)
            }
        case .look(let names): receiveLeases(names, value, at: now)
        case .lease: break
        case .holder:
            if LogScripts.isForeignLease(value) {
                damagedLines += 1
                requireSent(scripts.removeForeignLease(of: setup.own.name, on: link, tag: newTag(.nothing), at: now))
            }
            updateLease(holder: LogScripts.leaseHolder(value), at: now)
        case .bye: isLeaving = false
        case .piece(let bytes):
            untakenPieces -= bytes
            answerPresence(at: now)
        case .nothing, .confirm: break
        }
    }

    // MARK: Beats

    mutating func sendBeat(at now: Instant) {
        nextBeat = now + Self.beatInterval
        endOverdue()
        askForUsers(at: now)
        if writer.isOpen, ownApplied >= openedThrough || writer.waiting == 0 {
            var out: [ClusterState.Output] = []
            state.allCameOut(&out)
            performOutputs(out)
        }
        guard let place = writer.place, let since = writer.since else { return }
        beats += 1
        var flags: HubBeat.Flags = isDraining ? .draining : []
        if isLeaving { flags.insert(.leaving) }
        let beat = HubBeat(
            hub: setup.own, number: beats, since: since, base: writer.base, place: place, settled: writer.settled,
            digest: state.digest(of: setup.own.boot), digestSequence: ownApplied, flags: flags,
            figures: statistics.own.list, ended: peers.recentDeaths(at: Self.milliseconds), software: setup.version)
        let lease = keys.lease(of: setup.own.name)
        requireSent(
            link.queueCommand(
                ["SET", .text(lease), .text(String(setup.own.boot)), "PX", .integer(Self.leaseMilliseconds)],
                tag: newTag(.lease), at: now))
        let names = peers.namesToAsk
        requireSent(
            link.queueCommand(
                ["MGET", .text(keys.head)] + names.map { .text(keys.lease(of: $0)) }, tag: newTag(.look(names)), at: now
            ))
        requireSent(
            link.queueCommand(
                ["PUBLISH", .text(keys.channel), .bytes(PublishedMessage.encode(beat))], tag: newTag(.nothing), at: now)
        )
    }

    private mutating func receiveLeases(_ names: [String], _ value: RedisValue, at now: Instant) {
        guard let values = value.elements, values.count == names.count + 1 else { return }
        let head = values[0].text.flatMap { LogHead($0.utf8) }
        requireSent(link.publishPing(tag: newTag(.confirm(head)), at: now))
        if let head, let place = reader.place, head.place.epoch == place.epoch {
            behind = Int(max(0, head.place.offset - place.offset))
        }
        var holders: [String: UInt64?] = [:]
        for (name, value) in zip(names, values.dropFirst()) { holders[name] = .some(LogScripts.leaseHolder(value)) }
        var found: [PeerTableAction] = []
        peers.updateLeases(holders, at: Self.milliseconds, &found)
        performPeerActions(found, at: now)
    }
}

/// The request that a reply of Redis answers.
enum ClusterQuestion {
    case nothing
    case open
    case lease
    case holder
    case bye
    case publish
    /// An answer of this many bytes to a hub that asked who is present here.
    case piece(Int)
    case fetch(LogFetch)
    /// The head of the log, and the leases of these names.
    case look([String])
    /// Everything published before the head was read has arrived.
    case confirm(LogHead?)
}
