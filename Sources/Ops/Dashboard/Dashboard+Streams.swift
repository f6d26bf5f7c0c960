import Documents
import Gateway
import Streams
import Wire

/// Streams on the page: requests to the stream service and to the loops, and the buttons that end a stream.
extension Dashboard {
    func askForStreams() {
        guard let streams = sources.streams else { return pushState(.streams, ["served": .bool(false)]) }
        streams.surveyStreams(limit: Self.busiest) { survey in
            // A stream that is both busy and new is asked about once.
            let shown = Dictionary((survey.busiest + survey.newest).map { ($0.snapshot.id, $0.snapshot) }) { one, _ in
                one
            }
            self.gateway.watcherCounts(of: Array(shown.values)) { counts in
                self.pushState(.streams, Self.surveyDocument(survey, counts))
            }
        }
    }

    func askForReport(forStream name: StreamName) {
        guard let streams = sources.streams else { return pushState(.stream(name), ["stream": .null]) }
        streams.inspectStream(name, limit: Self.busiest) { report in
            guard let report else { return self.pushState(.stream(name), ["stream": .null]) }
            self.gateway.audience(of: report.line.snapshot, limit: Self.most) { audience in
                self.pushState(.stream(name), Self.reportDocument(report, audience))
            }
        }
    }

    /// Cancels or deletes the stream that the payload names, by its name and its ID: by the time the operator decides,
    /// another stream may have the name.
    ///
    /// - Parameter deed: the action for the log, such as "cancelled".
    func changeStream(
        _ payload: JSON, _ request: (StreamID) -> StreamRequest, _ deed: String, _ frame: ClientFrame,
        _ session: DashboardSession
    ) {
        guard let name = payload["stream"]?.string.flatMap({ StreamName($0) }), let id = payload["id"]?.string else {
            return refuseCommand(frame, session, "say which stream: {\"stream\": NAME, \"id\": ID}")
        }
        guard let streams = sources.streams, let stream = streams.buffer(of: name), stream.id.text == id else {
            return refuseCommand(frame, session, "there is no such stream any more")
        }
        streams.submitRequest(request(stream.id), on: name) { answer in
            switch answer {
            case .refused(.notFound), .refused(.otherGeneration):
                self.refuseCommand(frame, session, "there is no such stream any more")
            case .refused(.closeFailed(let sentence)):
                self.refuseCommand(frame, session, "the statement of streams.on_close failed: \(sentence)")
            case .refused: self.refuseCommand(frame, session, "streams cannot be written now; try again in a moment")
            case .created, .existed, .appended, .done:
                self.logDeed("\(deed) the stream \(name.text)", session)
                session.reply(to: frame, ok: true, ["stream": .text(name.text)])
            }
        }
    }
}

// MARK: JSON for the page

extension Dashboard {
    private static func surveyDocument(
        _ survey: StreamSurvey, _ counts: [StreamID: [StreamTransport: Int]]
    ) -> JSONDocument {
        let now = milliseconds
        func lines(_ lines: [StreamLine]) -> JSONDocument {
            .array(lines.map { .object(streamMembers(of: $0, counts[$0.snapshot.id] ?? [:], at: now)) })
        }
        return [
            "served": .bool(true), "streams": .integer(survey.streams), "open": .integer(survey.open),
            "stalled": .integer(survey.stalled), "bytes": .integer(survey.bytes), "busiest": lines(survey.busiest),
            "newest": lines(survey.newest),
        ]
    }

    private static func reportDocument(_ report: StreamReport, _ audience: StreamAudience) -> JSONDocument {
        let line = report.line
        let stream = streamMembers(of: line, audience.counts, at: milliseconds)
        let configuration = line.snapshot.configuration
        return [
            "stream": .object(stream), "limit": .integer(report.limit), "waiting": .integer(report.waiting),
            "lifetime": .text(lifetimeText(configuration.lifetime)), "lease": .optionalInteger(configuration.lease),
            "producerCount": .integer(report.producerCount),
            "producers": .array(report.producers.map(producerDocument)),
            "behind": .optionalInteger(audience.slowest.map { max(0, line.snapshot.end - $0) }),
            "watchers": .array(audience.watchers.map { watcherDocument($0, end: line.snapshot.end) }),
            "writers": .array(
                audience.writers.map {
                    ["id": .optional($0.connection?.description), "user": .optional($0.user?.text)]
                }),
            "trouble": .optional(report.trouble.map { Excerpt.redacted($0) }),
            "excerpt": .array(report.excerpt.map { .text($0) }),
        ]
    }

    private static func streamMembers(
        of line: StreamLine, _ watchers: [StreamTransport: Int], at now: Int64
    ) -> [(String, JSONDocument)] {
        let snapshot = line.snapshot
        return [
            ("name", .text(snapshot.name.text)), ("id", .text(snapshot.id.text)),
            ("type", .text(Excerpt.redacted(snapshot.configuration.contentType))),
            ("bytes", .integer(snapshot.end - snapshot.start)),
            ("state", .text(state(of: line))), ("seconds", .integer(max(0, now - line.createdAt) / 1000)),
            ("appends", .integer(line.appends)),
            ("silence", .rounded(line.appendedAt.map { Double(max(0, now - $0)) / 1000 })),
            ("byteRate", .rounded(line.rates?.bytes)), ("appendRate", .rounded(line.rates?.appends)),
            ("producer", .optional(line.producer.map { Excerpt.redacted($0.id) })),
            ("requests", .integer(line.holds.count(where: \.isRequest))),
            ("sockets", .integer(line.holds.count { !$0.isRequest })),
            ("webSockets", .integer(watchers[.webSocket] ?? 0)), ("events", .integer(watchers[.events] ?? 0)),
            ("longPolls", .integer(watchers[.longPoll] ?? 0)),
        ]
    }

    private static func state(of line: StreamLine) -> String {
        if line.isClosing { return "closing" }
        switch line.snapshot.status {
        case .open: return "open"
        case .stalled: return "stalled"
        case .ended(let ending): return ending.reason.rawValue
        }
    }

    private static func lifetimeText(_ lifetime: StreamConfiguration.Lifetime) -> String {
        switch lifetime {
        case .unlimited: "by the hub's settings"
        case .idle(let seconds): "\(seconds) s after it was last read or written"
        case .until(let time): "until \(CivilTime(millisecondsSince1970: Int(time)).text)"
        }
    }

    private static func producerDocument(_ producer: InspectedProducer) -> JSONDocument {
        [
            "id": .text(Excerpt.redacted(producer.id)), "epoch": .integer(producer.epoch),
            "sequence": .integer(producer.sequence), "end": .integer(producer.end),
        ]
    }

    private static func watcherDocument(_ watcher: StreamAudience.Watcher, end: Int) -> JSONDocument {
        [
            "transport": .text(watcher.transport.rawValue), "id": .optional(watcher.connection?.description),
            "user": .optional(watcher.user?.text), "address": .optional(watcher.address),
            "offset": .integer(watcher.offset),
            "behind": .integer(max(0, end - watcher.offset)), "pending": .integer(watcher.pendingBytes),
        ]
    }

    private static var milliseconds: Int64 { Int64(now().unix * 1000) }
}

extension JSONDocument {
    fileprivate static func optionalInteger(_ number: Int?) -> JSONDocument { number.map { .integer($0) } ?? .null }
}
