/// Numbers as an operator reads them.
enum Magnitude {
    /// In the largest unit of which there are two: 900 B, 64 MB.
    static func bytes(_ count: Int64) -> String {
        let units = ["B", "kB", "MB", "GB", "TB"]
        var (rest, unit) = (count, 0)
        while rest >= 2048, unit < units.count - 1 { (rest, unit) = (rest / 1024, unit + 1) }
        return "\(rest) \(units[unit])"
    }

    /// In the largest unit of which there are two: 90 s, 5 min, 47 h, 3 days.
    static func time(_ duration: Duration) -> String {
        let seconds = duration.components.seconds
        return switch seconds {
        case ..<120: "\(seconds) s"
        case ..<7200: "\(seconds / 60) min"
        case ..<172_800: "\(seconds / 3600) h"
        default: "\(seconds / 86_400) days"
        }
    }
}
