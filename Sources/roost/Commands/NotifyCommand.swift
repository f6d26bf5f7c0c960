import ArgumentParser
import Foundation
import Hub
import Wire

struct NotifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "notify",
        abstract: "Have users notified on their phones by a running hub, as POST /api/notify does.",
        discussion: """
            Prints a line for each user: what becomes of the notification. Without --token it signs one with jwt.secret for the \
            role service_role. Examples: `roost notify --user 8b0e7f12-… --title Hello --body World`, \
            `roost notify --json-file - < notification.json`.
            """)

    @Option(
        name: .customLong("user"), help: ArgumentHelp("A user who is to get it; may be given again.", valueName: "sub"))
    var users: [String] = []

    @Option(
        help: ArgumentHelp(
            "In place of users: a row as alerts.audience takes them, {\"table\", \"record\"}.", valueName: "json"))
    var audience: String?

    @Option(help: "The title.")
    var title: String?

    @Option(help: "The text.")
    var body: String?

    @Option(help: ArgumentHelp("Fields for the app, beside aps.", valueName: "json"))
    var data: String?

    @Option(help: ArgumentHelp("The conversation that a tap opens.", valueName: "id"))
    var conversation: String?

    @Option(help: "The number on the app's icon.")
    var badge: Int?

    @Option(help: "default, a file of the app's, or an empty text for silence. Default: alerts.sound.")
    var sound: String?

    @Option(help: "The category, whose actions the app defines.")
    var category: String?

    @Option(help: "passive, active, time-sensitive or critical.")
    var interruptionLevel: String?

    @Option(
        help: ArgumentHelp(
            "Of notifications with the same collapse id, the phone shows only the newest.", valueName: "text"))
    var collapseID: String?

    @Option(help: "always, or unseen (the default): not to whom the hub takes for somebody who is there.")
    var when: String?

    @Option(help: ArgumentHelp("The same id again sends nothing twice.", valueName: "text"))
    var id: String?

    @Option(
        name: .customLong("json-file"),
        help: ArgumentHelp(
            "The whole notification, as POST /api/notify takes it; - for the standard input.", valueName: "file"))
    var file: String?

    @OptionGroup var server: ServerOptions

    func validate() throws {
        let isByOptions = title != nil || body != nil || !users.isEmpty || audience != nil
        if file != nil, isByOptions {
            throw ValidationError("--json-file has all that there is to say; leave the others out.")
        }
        guard file == nil else { return }
        guard users.isEmpty == (audience != nil) else {
            throw ValidationError("Either --user or --audience is needed.")
        }
        guard title != nil || body != nil else { throw ValidationError("--title or --body is needed.") }
    }

    func run() async throws {
        let bytes = try notificationJSON()
        let transfer = try server.hub.makeTransfer(to: "/api", for: "roost notify")
        let answer = try transfer.performRequest(
            "POST", ["Content-Type: application/json"], behind: "/notify", body: ReplyInput(bytes))
        if server.json {
            StandardOutput.write(answer + [UInt8(ascii: "\n")])
            return
        }
        let json: JSON
        do { json = try JSON(parsing: answer) } catch {
            throw RunFailure("What answers at --url is not a hub that this command knows.")
        }
        for user in json["users"]?.elements ?? [] {
            StandardOutput.write(Array("\(user["userId"]?.string ?? "")\t\(Self.statusText(user))\n".utf8))
        }
    }

    private static func statusText(_ user: JSON) -> String {
        switch user["status"]?.string {
        case "queued": "queued for \(ServerOptions.countText(user["phones"]?.int, "phone"))"
        case "no_phone": "no phone"
        case "repeated": "sent before"
        default: "unknown"
        }
    }

    /// The notification as JSON; the hub checks it.
    private func notificationJSON() throws -> [UInt8] {
        if let file {
            do {
                let data =
                    file == "-"
                    ? try FileHandle.standardInput.readToEnd() ?? Data() : try Data(contentsOf: URL(filePath: file))
                return Array(data)
            } catch {
                throw RunFailure("\(file) cannot be read; name a file that this user may read.", .usage)
            }
        }
        let data = try self.data.map { try Self.parseJSON($0, "--data") }
        let audience = try self.audience.map { try Self.parseJSON($0, "--audience") }
        return JSONWriter.object { out in
            if let audience { out.writeMember("audience", json: audience) } else { out.writeMember("userIds", users) }
            if let id { out.writeMember("id", id) }
            if let title { out.writeMember("title", title) }
            if let body { out.writeMember("body", body) }
            if let data { out.writeMember("data", json: data) }
            if let conversation { out.writeMember("conversationId", conversation) }
            if let badge { out.writeMember("badge", badge) }
            if let sound { out.writeMember("sound", sound) }
            if let category { out.writeMember("category", category) }
            if let interruptionLevel { out.writeMember("interruptionLevel", interruptionLevel) }
            if let collapseID { out.writeMember("collapseId", collapseID) }
            if let when { out.writeMember("when", when) }
        }
    }

    private static func parseJSON(_ text: String, _ option: String) throws -> [UInt8] {
        do { return Array(try JSON(parsing: Array(text.utf8)).bytes) } catch {
            throw RunFailure("\(option) is not JSON from byte \(error.offset + 1) on.", .usage)
        }
    }
}
