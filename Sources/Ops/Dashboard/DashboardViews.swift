import Documents
import Gateway
import Hub

/// The loops' answers as JSON for the page.
extension Dashboard {
    func historyDocument(_ samples: [DashboardSample]) -> JSONDocument {
        ["samples": .array(samples.map(\.json)), "version": .text(sources.version), "node": .text(sources.node)]
    }

    /// A second's sample, and all figures of the metrics except histograms, whose news is in the sample.
    func overviewDocument(_ sample: DashboardSample) -> JSONDocument {
        let figures = sources.figures().compactMap { figure -> (String, JSONDocument)? in
            guard case .number(let value) = figure.value else { return nil }
            return (figure.label.isEmpty ? figure.name : "\(figure.name){\(figure.label)}", .rounded(value))
        }
        return [
            "sample": sample.json, "problem": .optional(health.problem), "figures": .object(figures),
            "logLevel": .text(sources.logLevel()), "cluster": sources.cluster?().json ?? .null,
        ]
    }

    var configuration: JSONDocument {
        [
            "settings": .array(
                sources.settings().map {
                    ["key": .text($0.key), "value": .text($0.value), "origin": .text($0.origin)]
                })
        ]
    }

    static func logDocument(_ lines: [RecentLog.Line], level: String) -> JSONDocument {
        [
            "level": .text(level),
            "lines": .array(
                lines.map {
                    [
                        "number": .integer($0.number), "at": .rounded($0.at), "level": .text($0.level),
                        "text": .text($0.text),
                    ]
                }),
        ]
    }

    static func loadsDocument(_ loads: [ChannelLoad]) -> JSONDocument {
        [
            "channels": .array(
                loads.map {
                    [
                        "topic": .text($0.key.topic), "private": .bool($0.key.isPrivate),
                        "sockets": .integer($0.sockets), "present": .integer($0.present),
                        "messages": .integer($0.messages), "deliveries": .integer($0.deliveries),
                    ]
                })
        ]
    }

    static func socketsDocument(_ sockets: [SocketView]) -> JSONDocument { .array(sockets.map(socketDocument)) }

    private static func socketDocument(_ socket: SocketView) -> JSONDocument {
        [
            "id": .text(socket.id.description), "loop": .integer(socket.id.loop), "address": .text(socket.address),
            "user": .optional(socket.user?.text), "channels": .integer(socket.channels),
            "seconds": .integer(socket.seconds),
            "pending": .integer(socket.pendingBytes), "behind": .bool(socket.isBehind),
            "writtenOff": .bool(socket.isWrittenOff), "closing": .bool(socket.isClosing),
        ]
    }

    /// The report of a connection; without `socket` if it is gone.
    static func connectionDocument(_ report: ConnectionReport?) -> JSONDocument {
        guard let report else { return ["socket": .null] }
        let connection = report.connection
        return [
            "socket": socketDocument(report.socket), "version": .text(connection.version.name),
            "role": .text(connection.role.text), "silence": .integer(report.silence),
            "appState": .optional(connection.appState?.rawValue),
            "memberships": .array(connection.memberships.map(membershipDocument)),
            "trace": .array(report.trace.map(entryDocument)),
        ]
    }

    private static func membershipDocument(_ membership: ConnectionView.Membership) -> JSONDocument {
        [
            "topic": .text(membership.key.topic), "private": .bool(membership.key.isPrivate),
            "joined": .bool(membership.isJoined), "user": .optional(membership.user?.text),
            "presenceKey": .text(membership.presenceKey), "present": .bool(membership.isPresent),
            "changes": .integer(membership.changes),
        ]
    }

    private static func entryDocument(_ entry: TraceEntry) -> JSONDocument {
        [
            "number": .integer(entry.number), "at": .integer(Int(entry.at)), "out": .bool(entry.isOutgoing),
            "topic": .text(entry.head.topic), "event": .text(entry.head.event), "excerpt": .text(entry.head.excerpt),
            "bytes": .integer(entry.bytes), "queue": .integer(entry.queue),
        ]
    }

    /// The report of a channel from all loops: each has its own members, and all of them know everyone who is present.
    static func channelDocument(_ reports: [ChannelReport]) -> JSONDocument {
        let members = reports.flatMap { report in
            zip(report.view.members, report.members).map {
                memberDocument($0, $1, isPrivate: report.view.key.isPrivate)
            }
        }
        let rooms = [false, true].compactMap { isPrivate -> JSONDocument? in
            let views = reports.map(\.view).filter { $0.key.isPrivate == isPrivate }
            guard let fullest = views.max(by: { $0.presentCount < $1.presentCount }) else { return nil }
            return [
                "private": .bool(isPrivate), "sockets": .integer(views.reduce(0) { $0 + $1.sockets }),
                "presentCount": .integer(fullest.presentCount),
                "present": .array(
                    fullest.present.map { ["key": .text($0.key), "excerpt": .text($0.excerpt)] }),
                "typing": .integer(views.map(\.typing).max() ?? 0),
            ]
        }
        let notes = reports.flatMap { report in report.view.events.map { (loop: report.loop, event: $0) } }
        return [
            "rooms": .array(rooms), "members": .array(members),
            "events": .array(ListedEvent.mergeNotes(notes).map(eventDocument)),
        ]
    }

    private static func memberDocument(_ member: ChannelView.Member, _ id: ConnectionID, isPrivate: Bool)
        -> JSONDocument
    {
        [
            "id": .text(id.description), "user": .optional(member.user?.text), "role": .text(member.role.text),
            "presenceKey": .text(member.presenceKey), "present": .bool(member.isPresent),
            "changes": .integer(member.changes), "private": .bool(isPrivate),
        ]
    }

    private static func eventDocument(_ event: ListedEvent) -> JSONDocument {
        [
            "number": .integer(event.number), "loop": .integer(event.loop), "at": .integer(Int(event.first.at)),
            "event": .text(event.first.event), "receivers": .integer(event.receivers),
            "bytes": .integer(event.first.bytes), "excerpt": .text(event.first.excerpt),
            "refused": .bool(event.first.isRefused),
        ]
    }
}
