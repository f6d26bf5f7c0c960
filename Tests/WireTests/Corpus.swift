/// Frames as real clients send them: what the fuzz runs start from.
enum Corpus {
    static let text: [[UInt8]] = [
        #"{"event":"heartbeat","payload":{},"topic":"phoenix","ref":null,"join_ref":null}"#,
        #"[null,"26","phoenix","heartbeat",{}]"#,
        #"["6","6","realtime:room1","phx_join",{"config":{"broadcast":{"self":true,"ack":true,"replay":{"since":1,"limit":5},"replication_ready":true},"presence":{"key":"me","enabled":true},"postgres_changes":[{"event":"INSERT","schema":"public","table":"todos","filter":"id=gt.0,t=in.(\"a,b\",c)"},{"event":"*","schema":"*","select":["id"]},null],"private":false},"access_token":"eyJhbGciOiJIUzI1NiJ9.e30.c2ln","version":"2.112"}]"#,
        #"{"topic":"realtime:room1","event":"phx_join","payload":{"config":{"broadcast":{"ack":"true","self":"false"},"presence":{"key":"","enabled":null},"private":"false","postgres_changes":null},"access_token":null,"user_token":"sb_x"},"ref":"1","join_ref":"1"}"#,
        #"["6","7","realtime:room1","phx_leave",{}]"#,
        #"["6","8","realtime:room1","broadcast",{"type":"broadcast","event":"cursor","payload":{"x":1.5e3,"name":"\u00e9\ud83d\ude00","deep":[[[{"a":[null,true,false]}]]]}}]"#,
        #"{"topic":"realtime:room1","event":"broadcast","payload":{"type":"broadcast","event":"typing","payload":{"who":"zoë 😀"}},"ref":"9","join_ref":"1"}"#,
        #"["6","9","realtime:room1","presence",{"type":"presence","event":"track","payload":{"name":"me","online_at":"2026-01-01T00:00:00Z"}}]"#,
        #"["6","10","realtime:room1","presence",{"type":"presence","event":"UNTRACK"}]"#,
        #"["6","11","realtime:room1","access_token",{"access_token":"eyJhbGciOiJIUzI1NiJ9.e30.c2ln"}]"#,
        #"[null,"12","realtime:","phx_join",{}]"#,
        #"["13","13","realtime:\"quoted\"\\ \n","phx_join",{"config":{}}]"#,
    ].map { Array($0.utf8) }

    static let binary: [[UInt8]] = [
        BinaryClientFrameTests.verified,
        [3, 1, 1, 14, 6, 0, 0] + Array("68realtime:room1cursor".utf8) + [0, 1, 2, 0xFF],
        [3, 0, 0, 14, 3, 2, 1] + Array(#"realtime:room1zoë{}{"deep":[[[1]]]}"#.utf8),
        [3, 2, 3, 10, 0, 0, 1] + Array("10101realtime:a{}".utf8),
    ]

    static let all = text + binary
}
