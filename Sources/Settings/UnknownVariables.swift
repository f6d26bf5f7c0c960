/// Environment variables with Roost's prefix that are no settings: misspelled ones, and those of other programs.
///
/// They do not prevent a start, because other programs set variables, too: Kubernetes does so for each service. Their
/// values are never shown, as they may be secrets.
struct UnknownVariables {
    /// In alphabetical order.
    private let misspelt: [String]
    /// Variables that Kubernetes sets for a service.
    private let links: [String]

    private static let known =
        Setting.all.map(\.environmentName) + [
            Setting.fileVariable, Setting.postgresProgramsVariable, Setting.tokenVariable,
        ]

    init(in environment: [String: String]) {
        let known = Set(Self.known)
        let unknown = environment.filter { name, value in
            name.hasPrefix(Setting.environmentPrefix + "_") && !value.isEmpty && !known.contains(name)
        }
        misspelt = unknown.filter { !ServiceLink.isOne($0.key, $0.value) }.keys.sorted()
        links = unknown.filter { ServiceLink.isOne($0.key, $0.value) }.keys.sorted()
    }

    /// One for each that may be misspelled, and one for all of Kubernetes'.
    var sentences: [String] { misspelt.map(misspellingSentence) + linkSentence }

    private func misspellingSentence(_ name: String) -> String {
        let advice =
            NearestName.find(name, among: Self.known).map { "did you mean \($0)?" }
            ?? "a variable is named after its key, as ROOST_HTTP_PORT after http.port, and `roost config print` shows the keys."
        return "There is no setting \(Quotation.excerpt(name)), so it is ignored; \(advice)"
    }

    private var linkSentence: [String] {
        guard let first = links.first else { return [] }
        let others = links.count == 1 ? "" : " and \(links.count - 1) more"
        return [
            "\(Quotation.excerpt(first))\(others) \(links.count == 1 ? "is" : "are") ignored: Kubernetes makes such variables for a "
                + "service, and `enableServiceLinks: false` in the pod stops that."
        ]
    }
}

/// Variables that Kubernetes and Docker's links set for a service `NAME`: `NAME_SERVICE_HOST`, `NAME_SERVICE_PORT[_…]`,
/// `NAME_PORT=tcp://…`, `NAME_PORT_4000_TCP[_PROTO|_PORT|_ADDR]`.
enum ServiceLink {
    private static let protocols = ["TCP", "UDP", "SCTP"]

    static func isOne(_ name: String, _ value: String) -> Bool {
        let words = name.split(separator: "_", omittingEmptySubsequences: false)
        if words.suffix(2) == ["SERVICE", "HOST"] { return true }
        if words.firstRange(of: ["SERVICE", "PORT"]) != nil { return true }
        if words.last == "PORT", protocols.contains(where: { value.hasPrefix($0.lowercased() + "://") }) { return true }
        return words.indices.dropFirst(2).contains { index in
            words[index - 2] == "PORT" && Int(words[index - 1]) != nil && protocols.contains(String(words[index]))
        }
    }
}
