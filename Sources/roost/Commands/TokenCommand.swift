import ArgumentParser
import Identity
import Settings
import Wire

struct TokenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token",
        abstract: "Mint a token for development and tests.",
        discussion: "Signs it with jwt.secret and prints it. In production your identity service mints tokens."
    )

    @Option(help: "The claim `role`: anon, authenticated, service_role or one of your own.")
    var role = "anon"

    @Option(help: ArgumentHelp("The claim `sub`, usually the user's id.", valueName: "subject"))
    var sub: String?

    @Option(help: ArgumentHelp("How long it is valid: 90s, 15m, 12h, 30d.", valueName: "duration"))
    var expiresIn = TokenLifetime(seconds: 3600)

    @Option(help: ArgumentHelp("More claims; they win over the other flags.", valueName: "json"))
    var claims: String?

    @Option(help: "HS256, HS384 or HS512.", transform: Self.parseAlgorithm)
    var algorithm = SignatureAlgorithm.hs256

    @OptionGroup(title: "Configuration")
    var options: ConfigurationOptions

    func run() async throws {
        let secret = try options.loadAndApply().requireJWTSecret(for: "roost token")
        let token = DevelopmentToken(
            role: role, subject: sub, lifetime: expiresIn.seconds, claims: claims, algorithm: algorithm)
        print(try token.signed(with: secret))
    }

    @Sendable private static func parseAlgorithm(_ name: String) throws -> SignatureAlgorithm {
        guard let algorithm = SignatureAlgorithm(rawValue: name.uppercased()), algorithm.isSymmetric else {
            throw ValidationError("HS256, HS384 or HS512 is expected: a secret signs with no other.")
        }
        return algorithm
    }
}

/// A duration as typed: a number and a unit; seconds if there is none.
struct TokenLifetime: ExpressibleByArgument {
    let seconds: Int

    init(seconds: Int) {
        self.seconds = seconds
    }

    init?(argument: String) {
        let units: [Character: Int] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
        let unit = argument.last.flatMap { units[$0] }
        let digits = unit == nil ? argument[...] : argument.dropLast()
        guard let number = Int(digits), number > 0 else { return nil }
        // Development tokens live ten years at most; anything longer is a typing error.
        let (seconds, isTooLarge) = number.multipliedReportingOverflow(by: unit ?? 1)
        guard !isTooLarge, seconds <= 3650 * 86_400 else { return nil }
        self.seconds = seconds
    }

    var defaultValueDescription: String { seconds % 3600 == 0 ? "\(seconds / 3600)h" : "\(seconds)s" }
}

/// A token signed with the configured secret, for development and for `roost tail`.
struct DevelopmentToken {
    var role: String
    var subject: String?
    /// The validity in seconds.
    var lifetime: Int
    /// A JSON object of further claims.
    var claims: String?
    var algorithm = SignatureAlgorithm.hs256

    func signed(with secret: String) throws -> String {
        TokenMint(secret: secret, algorithm: algorithm)
            .mint(role: role, subject: subject, lifetime: lifetime, now: Clock.now(), extra: try extraClaims())
    }

    private func extraClaims() throws -> JSON {
        guard let claims else { return .emptyObject }
        let problem = RunFailure("--claims must be a JSON object, such as '{\"aud\":\"authenticated\"}'.", .usage)
        do {
            let json = try JSON(parsing: Array(claims.utf8))
            guard json.kind == .object else { throw problem }
            return json
        } catch is JSON.SyntaxError {
            throw problem
        }
    }
}
