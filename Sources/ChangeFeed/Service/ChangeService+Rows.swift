package import Hub
import Matching
import Postgres
import Wire

extension ChangeService: RowSource {
    package func readRows(
        _ query: RowsQuery, as claims: Claims, then done: @escaping @Sendable (RowsAnswer) -> Void
    ) {
        let request: RowsRequest
        do throws(SubscriptionError) { request = try RowsRequest(query) } catch { return done(.refused(error.message)) }
        let isPosted = inbox.postIdleWork { [dispatcher, inbox] context in
            guard context.canQuery, context.status == .ready else { return done(.unavailable) }
            let part: RowReading.Part
            do {
                // A request that this catalog refuses is judged again by the current one, which then knows the role.
                let known = context.catalog
                let isKnown =
                    known.access(of: claims.role)?.exists == true
                    && known.table(schema: request.schema, name: request.table) != nil
                let catalog = try isKnown ? known : context.currentCatalog(knowing: [claims.role])
                part = try RowReading.Part(request, as: claims.role, in: catalog)
            } catch let error as SubscriptionError {
                return done(.refused(error.message))
            } catch {
                return done(.unavailable)
            }
            let reader = dispatcher.rowReader
            reader.requestRows(
                RowReading(claims: claims, topic: "", parts: [part], isForEvents: false) { outcome, bytes in
                    inbox.postWork { context in
                        reader.releaseBytes(bytes, of: claims)
                        done(RowsAnswer(outcome, context))
                    }
                })
        }
        if !isPosted { done(.unavailable) }
    }
}

extension RowsAnswer {
    fileprivate init(_ outcome: RowReading.Outcome, _ context: FeedContext) {
        switch outcome {
        case .unavailable: self = .unavailable
        case .tooMany: self = .tooMany
        case .read(let snapshot, let answers):
            switch answers.first {
            case .failure(let error): self = .refused(error.message)
            case .success(let answer):
                guard let snapshot, let cursor = context.locate(.snapshot(snapshot)) else {
                    self = .unavailable
                    return
                }
                self = .rows(answer.rows, next: answer.next, cursor: cursor)
            case nil: self = .unavailable
            }
        }
    }
}

extension RowsRequest {
    fileprivate init(_ query: RowsQuery) throws(SubscriptionError) {
        var limit = Self.defaultRows
        if let text = query.limit { limit = Int(text) ?? 0 }
        var after: JSON?
        if let text = query.after {
            do { after = try JSON(parsing: Array(text.utf8)) } catch {
                throw SubscriptionError("after must be JSON: what next was in the answer before, encoded for a URL")
            }
        }
        try self.init(
            schema: query.schema, table: query.table, filter: query.filter,
            select: query.select?.split(separator: ",").map(String.init) ?? [], order: query.order, limit: limit,
            after: after)
    }
}
