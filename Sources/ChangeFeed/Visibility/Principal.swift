package import Hub

/// A user in questions about policies: claims with a number, which is cheaper to compare and to look up.
package final class Principal {
    /// Never reused, so that an answer for one principal is never taken for another's.
    let number: Int
    let claims: Claims
    fileprivate var uses = 0

    fileprivate init(number: Int, claims: Claims) {
        self.number = number
        self.claims = claims
    }
}

/// Every subscribed user, once, however many subscriptions the user has. Shared by all registries, so that answers kept for
/// a principal serve them all.
package final class PrincipalTable {
    private var byClaims: [Claims: Principal] = [:]
    private var lastNumber = 0

    package init() {}

    /// Counts a use of the principal, which must be released.
    package func retainPrincipal(_ claims: Claims) -> Principal {
        if let known = byClaims[claims] {
            known.uses += 1
            return known
        }
        lastNumber += 1
        let principal = Principal(number: lastNumber, claims: claims)
        principal.uses = 1
        byClaims[claims] = principal
        return principal
    }

    func releasePrincipal(_ principal: Principal) {
        principal.uses -= 1
        if principal.uses == 0 { byClaims[principal.claims] = nil }
    }
}
