import Wire

/// A reader's request over HTTP: channels, each with the config of a join.
package struct EventRequest: Sendable {
    package struct Channel: Sendable {
        /// The topic without its prefix, as used over HTTP.
        package let topic: String
        /// The `config` of a join, as JSON text.
        package let config: [UInt8]
    }

    package let channels: [Channel]
    /// The only event whose broadcasts are wanted; nil for everything.
    package let event: String?
    /// The `id` of the last event that the client has.
    package var lastID: String?

    /// The maximum number of channels: the positions in that many fit into a cursor.
    package static let mostChannels = 80

    /// A flaw of the request, in one sentence.
    package struct Mistake: Error, Equatable {
        package let sentence: String
    }

    /// Requests the broadcasts of one channel.
    package init(topic: String, isPrivate: Bool, event: String?, lastID: String?) {
        let config = isPrivate ? "{\"private\":true}" : "{}"
        channels = [Channel(topic: topic, config: Array(config.utf8))]
        self.event = event
        self.lastID = lastID
    }

    /// Parses channels as a query lists them: each is a name, for the broadcasts of a public channel, or JSON with a
    /// `topic` and a `config`.
    package init(channels texts: [String], lastID: String?) throws(Mistake) {
        var channels: [Channel] = []
        for text in texts {
            guard text.utf8.first(where: { $0 != UInt8(ascii: " ") }) == UInt8(ascii: "{") else {
                channels.append(Channel(topic: text, config: Array("{}".utf8)))
                continue
            }
            do { channels.append(try Self.parseChannel(JSON(parsing: Array(text.utf8)))) } catch let mistake as Mistake
            {
                throw mistake
            } catch {
                throw Mistake(
                    sentence:
                        "channel is neither a name nor JSON like {\"topic\":\"room:1\",\"config\":{}}; "
                        + "encode it for a URL")
            }
        }
        try self.init(channels, lastID: lastID)
    }

    /// Parses the body of a POST: `{"channels": […], "last_event_id": …}`, in which a channel is as in a query, or the
    /// object itself.
    ///
    /// - Parameter lastID: from the header, which takes precedence.
    package init(body: [UInt8], lastID: String?) throws(Mistake) {
        let json: JSON
        do { json = try JSON(parsing: body) } catch { throw Self.noBody }
        guard json.kind == .object, let list = json["channels"], list.kind == .array else { throw Self.noBody }
        var channels: [Channel] = []
        for element in list.elements(upTo: Self.mostChannels + 1) {
            if let name = element.string {
                channels.append(Channel(topic: name, config: Array("{}".utf8)))
            } else {
                channels.append(try Self.parseChannel(element))
            }
        }
        try self.init(channels, lastID: lastID ?? json["last_event_id"]?.string)
    }

    /// Returns the token in a body, which is given as in the payload of a join.
    package static func token(ofBody body: [UInt8]) -> String? {
        do { return JoinConfig.token(try JSON(parsing: body)["access_token"]) } catch { return nil }
    }

    private static let noBody = Mistake(
        sentence: "The body must be JSON like {\"channels\":[{\"topic\":\"room:1\",\"config\":{}}]}")

    private init(_ channels: [Channel], lastID: String?) throws(Mistake) {
        guard !channels.isEmpty else {
            throw Mistake(sentence: "Name a channel: ?channel=room:1, or channels in the body")
        }
        guard channels.count <= Self.mostChannels else {
            throw Mistake(
                sentence: "One connection reads at most \(Self.mostChannels) channels: open another for the others")
        }
        var topics: Set<[UInt8]> = []
        for channel in channels where !topics.insert(Array(channel.topic.utf8)).inserted {
            throw Mistake(sentence: "A channel is named twice: name each once")
        }
        self.channels = channels
        self.event = nil
        self.lastID = lastID
    }

    private static func parseChannel(_ json: JSON) throws(Mistake) -> Channel {
        guard json.kind == .object, let topic = json["topic"]?.string else {
            throw Mistake(sentence: "A channel has no topic: write it like {\"topic\":\"room:1\",\"config\":{}}")
        }
        guard let config = json["config"] else { return Channel(topic: topic, config: Array("{}".utf8)) }
        guard config.kind == .object else {
            throw Mistake(sentence: "The config of a channel must be an object, as in a join")
        }
        return Channel(topic: topic, config: Array(config.bytes))
    }
}

extension EventRequest.Channel {
    var key: String { ChannelKey.prefix + topic }

    /// Builds the config of the channel's join.
    ///
    /// A browser reconnects by itself, so broadcasts are kept for the reader unless the config says otherwise or asks
    /// for row changes, which do not require any to be kept.
    ///
    /// - Parameter cursor: the client's position.
    func joinConfig(_ limits: HubLimits, _ cursor: EventCursor?) -> JoinConfig {
        var payload = Array("{\"config\":".utf8)
        payload += config
        payload.append(UInt8(ascii: "}"))
        var join = JoinConfig(JSON(trusted: payload[...]), topic: key, limits: limits)
        let saysHistory = JSON(trusted: config[...])["broadcast"]?["history"] != nil
        if join.history == nil, !saysHistory, join.changes.isEmpty, !ChannelStream.isOne(key) {
            join.history = HistoryRequest(JSON(trusted: Array("true".utf8)[...]))
        }
        let position = cursor?[ChannelKey(topic: key, isPrivate: join.isPrivate)]
        join.position = position
        if let history = position?.history { join.history?.after = history }
        if let rows = position?.rows { join.resumeCursor = rows }
        if let stream = position?.stream { join.stream = join.stream.resumed(at: stream) }
        join.wantsCursor = !join.changes.isEmpty
        // A reader has no app state.
        join.appState = nil
        return join
    }
}
