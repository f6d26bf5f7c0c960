import Settings
import Testing

@Suite("Unknown variables")
struct UnknownVariableTests {
    @Test(
        "one that is misspelt is a warning with the nearest name",
        arguments: [
            ("ROOST_HTTP_PROT", "There is no setting ROOST_HTTP_PROT, so it is ignored; did you mean ROOST_HTTP_PORT?"),
            (
                "ROOST_JWT_SECERT",
                "There is no setting ROOST_JWT_SECERT, so it is ignored; did you mean ROOST_JWT_SECRET?"
            ),
            (
                "ROOST_NONSENSE",
                "There is no setting ROOST_NONSENSE, so it is ignored; a variable is named after its key, as ROOST_HTTP_PORT "
                    + "after http.port, and `roost config print` shows the keys."
            ),
            (
                "ROOST_A\nB",
                "There is no setting ROOST_A\\nB, so it is ignored; a variable is named after its key, as ROOST_HTTP_PORT "
                    + "after http.port, and `roost config print` shows the keys."
            ),
        ])
    func misspelt(name: String, sentence: String) throws {
        #expect(try warnings([name: "a secret of somebody"]) == [sentence])
    }

    @Test("those that Kubernetes makes for a service named roost are one warning")
    func serviceLinks() throws {
        let link = [
            "ROOST_PORT": "tcp://10.96.0.7:4000", "ROOST_SERVICE_HOST": "10.96.0.7", "ROOST_SERVICE_PORT": "4000",
            "ROOST_SERVICE_PORT_CLIENTS": "4000", "ROOST_PORT_4000_TCP": "tcp://10.96.0.7:4000",
            "ROOST_PORT_4000_TCP_PROTO": "tcp", "ROOST_PORT_4000_TCP_PORT": "4000",
            "ROOST_PORT_4000_TCP_ADDR": "10.96.0.7",
        ]
        let sentence =
            "ROOST_PORT and 7 more are ignored: Kubernetes makes such variables for a service, and "
            + "`enableServiceLinks: false` in the pod stops that."
        #expect(try warnings(link) == [sentence])
    }

    @Test("what others of the house read is none, and neither is an empty one")
    func known() throws {
        #expect(
            try warnings(["ROOST_TOKEN": "eyJ", "ROOST_POSTGRES_BIN": "/opt", "ROOST_COLOUR": "", "HOME": "/"]) == [])
    }

    private func warnings(_ environment: [String: String]) throws -> [String] {
        try RoostConfiguration.load(environment: environment, files: []).warnings
    }
}
