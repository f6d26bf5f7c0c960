import ArgumentParser
import Push

struct PushKeysCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keys",
        abstract: "Make a key pair for pushes to browsers.",
        discussion: """
            Prints what to put into web_push.private_key, and the public key, which pages subscribe for and which the hub says \
            under /api/push/key. Keep the private one: with another, all browsers have to subscribe again.
            """)

    func run() throws {
        guard let keys = VAPIDKey.create() else {
            throw RunFailure("The machine has no memory for a key pair.", .unavailable)
        }
        StandardOutput.writeLine("private key: \(keys.privateText)")
        StandardOutput.writeLine("public key:  \(keys.publicText)")
    }
}
