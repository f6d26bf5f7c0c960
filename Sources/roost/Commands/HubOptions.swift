import ArgumentParser
import Settings

/// The hub that a command talks to over HTTP, and its token.
struct HubOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The hub; default: http.host and http.port of the configuration.", valueName: "url"))
    var url: String?

    @Option(help: ArgumentHelp("The token to use.", valueName: "jwt"))
    var token: String?

    @OptionGroup(title: "Configuration")
    var options: ConfigurationOptions

    /// Prepares requests to a path of the hub, with the given token or one signed for the role `service_role`.
    ///
    /// - Parameter command: the name in errors.
    func makeTransfer(to path: String, for command: String) throws -> HubTransfer {
        let configuration = try options.loadAndApply()
        let token: String
        if let given = self.token {
            token = given
        } else {
            let secret = try configuration.requireJWTSecret(for: "\(command) without --token")
            token = try DevelopmentToken(role: "service_role", lifetime: 86_400).signed(with: secret)
        }
        let scheme = configuration.tlsCertificate == nil ? "http" : "https"
        let hub = url ?? "\(scheme)://\(configuration.httpHost):\(configuration.httpPort)"
        guard hub.hasPrefix("http://") || hub.hasPrefix("https://") else {
            throw RunFailure("--url must be http://HOST:PORT or https://HOST:PORT, not \(Mask.url(hub)).", .usage)
        }
        return try HubTransfer(url: hub + path, token: token)
    }

    /// Percent-encodes everything that a path cannot contain (RFC 3986, section 3.3).
    static func percentEncoded(_ name: String) -> String {
        var out = ""
        for byte in name.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"), UInt8(ascii: "/"), UInt8(ascii: ":"):
                out.unicodeScalars.append(Unicode.Scalar(byte))
            default: out += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return out
    }
}
