import ArgumentParser

/// A duration as one types it: a number and a unit, seconds where there is none.
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
        // No token of ours lives longer than ten years; what is beyond that is a slip of the finger.
        let (seconds, isTooLarge) = number.multipliedReportingOverflow(by: unit ?? 1)
        guard !isTooLarge, seconds <= 3650 * 86_400 else { return nil }
        self.seconds = seconds
    }

    var defaultValueDescription: String { seconds % 3600 == 0 ? "\(seconds / 3600)h" : "\(seconds)s" }
}
