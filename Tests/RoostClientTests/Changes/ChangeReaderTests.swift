import Foundation
import RoostClient
import Testing
import Wire

@Suite struct ChangeReaderTests {
    struct Message: Decodable, Identifiable, Sendable {
        let id: Int
        let body: String
    }

    private func reader(_ key: RowKey<Message> = .id) -> ChangeReader<Message> {
        ChangeReader(key, RoostClient.Configuration { "" })
    }

    private func change(
        _ kind: String, record: String? = nil, old: String? = nil, number: Int, errors: String = "null"
    ) -> Mailbox<ChangeSignal>.Delivery {
        let record = record.map { ",\"record\":\($0)" } ?? ""
        let old = old.map { ",\"old_record\":\($0)" } ?? ""
        let text = """
            {"ids":[1],"cursor":"w.\(String(number, radix: 36))",\
            "data":{"type":"\(kind)","schema":"public","table":"m",\
            "commit_timestamp":"2026-01-02T03:04:05.678Z","errors":\(errors)\(record)\(old)}}
            """
        guard let (_, change) = IncomingChange.parse(JSON(trusted: Array(text.utf8)[...])) else {
            preconditionFailure("a payload that is none")
        }
        return .element(.change(change))
    }

    @Test func rowsAreDecoded() throws {
        let reader = reader()
        guard
            case .insert(let row, let info) = reader.nextChange(
                change("INSERT", record: "{\"id\":1,\"body\":\"x\"}", number: 1))
        else {
            Issue.record("no insert")
            return
        }
        #expect(row.body == "x")
        #expect(info.table == "m")
        #expect(info.cursor == "w.1")
        #expect(info.commitTime == Date(timeIntervalSince1970: 1_767_323_045.678))
        guard
            case .update(_, let old, _) = reader.nextChange(
                change("UPDATE", record: "{\"id\":1,\"body\":\"y\"}", old: "{\"id\":1}", number: 2))
        else {
            Issue.record("no update")
            return
        }
        #expect(old.value("id", as: Int.self) == 1)
        #expect(old.value("body", as: String.self) == nil)
        guard case .delete(let gone, _) = reader.nextChange(change("DELETE", old: "{\"id\":1}", number: 3)) else {
            Issue.record("no delete")
            return
        }
        #expect(gone.value("id", as: Int.self) == 1)
    }

    @Test func repeatsAreDroppedAndSoAreOlderVersions() {
        let reader = reader()
        let inserted = change("INSERT", record: "{\"id\":1,\"body\":\"x\"}", number: 1)
        let updated = change("UPDATE", record: "{\"id\":1,\"body\":\"y\"}", old: "{\"id\":1}", number: 2)
        let deleted = change("DELETE", old: "{\"id\":1}", number: 3)
        let all = [inserted, updated, inserted, updated, deleted, inserted, updated, deleted].map {
            reader.nextChange($0)
        }
        #expect(all.map { $0 != nil } == [true, true, false, false, true, false, false, false])
    }

    @Test(arguments: [RowKey<Message>.columns("id"), .by { $0.id }, .path(\.id), .none])
    func otherKeys(key: RowKey<Message>) {
        let reader = reader(key)
        let first = change("INSERT", record: "{\"id\":1,\"body\":\"x\"}", number: 1)
        let second = change("INSERT", record: "{\"id\":2,\"body\":\"x\"}", number: 2)
        let deleted = change("DELETE", old: "{\"id\":1}", number: 3)
        let all = [first, second, first, second, deleted, deleted].map { reader.nextChange($0) }
        #expect(all.map { $0 != nil } == [true, true, false, false, true, false])
    }

    @Test func afterAReloadNothingIsRemembered() {
        let reader = reader()
        let inserted = change("INSERT", record: "{\"id\":1,\"body\":\"x\"}", number: 5)
        _ = reader.nextChange(inserted)
        guard case .reload(.expired("old")) = reader.nextChange(.element(.expired(reason: "old"))) else {
            Issue.record("no reload")
            return
        }
        #expect(reader.nextChange(change("UPDATE", record: "{\"id\":1,\"body\":\"x\"}", number: 2)) != nil)
    }

    @Test func whatWasDroppedIsTold() {
        guard case .reload(.overflow(12)) = reader().nextChange(.missed(12)) else {
            Issue.record("no reload")
            return
        }
    }

    @Test func whatCannotBeReadIsHandedOnAsSuch() {
        let reader = reader()
        for (number, text) in ["{\"id\":1}", "{\"id\":\"x\",\"body\":\"\"}"].enumerated() {
            guard case .unreadable(let row) = reader.nextChange(change("INSERT", record: text, number: number)) else {
                Issue.record("\(text)")
                continue
            }
            #expect(String(decoding: row.json, as: UTF8.self) == text)
            #expect(!row.reason.isEmpty)
        }
        let short = change(
            "INSERT", record: "{\"id\":3,\"body\":\"x\"}", number: 9, errors: "[\"Error 413: Payload Too Large\"]")
        guard case .unreadable(let row) = reader.nextChange(short) else {
            Issue.record("a shortened row passed for a whole one")
            return
        }
        #expect(row.reason == "Error 413: Payload Too Large")
    }
}
