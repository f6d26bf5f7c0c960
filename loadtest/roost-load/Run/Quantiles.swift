import Glibc

/// The shares of a distribution that a plot needs: five for each halving of what lies beyond.
enum Quantiles {
    private static let named = [0, 0.5, 0.9, 0.99, 0.999, 1]

    /// In ascending order; beyond the last single value there is nothing to show.
    static func shares(count: Int) -> [Double] {
        var shares = named
        var beyond = 1.0
        while beyond * Double(count) > 1, shares.count < 200 {
            beyond *= 0.870550563296124  // The fifth root of a half.
            shares.append(1 - beyond)
        }
        return shares.sorted()
    }
}
