import Hub
import Postgres

extension TakenAlerts {
    private struct Key: Hashable {
        let message: String
        let user: String
    }

    /// From the rows of TakeAlerts.sql: alerts, and behind them their phones, which have a token.
    init(_ rows: QueryResult) {
        let keys = (0..<rows.count).map { Key(message: rows.text($0, 0) ?? "", user: rows.text($0, 1) ?? "") }
        var devices: [Key: [DeviceRegistration]] = [:]
        for row in 0..<rows.count {
            guard let destination = PushDestination(rows, row, from: 6) else { continue }
            devices[keys[row], default: []].append(
                DeviceRegistration(
                    user: keys[row].user, destination: destination, kind: .alert,
                    registeredAt: rows.integer(row, 9) ?? 0))
        }
        for row in 0..<rows.count {
            switch rows.text(row, 2) {
            case "expired": expired += 1
            case "dropped": dropped += 1
            case "taken":
                guard let devices = devices[keys[row]] else {
                    withoutDevice += 1
                    continue
                }
                alerts.append(
                    DueAlert(
                        message: keys[row].message, user: keys[row].user, conversation: rows.text(row, 3),
                        variables: rows.bytes(row, 4).map { Array($0) } ?? [], expiresAt: rows.integer(row, 5) ?? 0,
                        devices: devices))
            default: continue
            }
        }
    }
}
