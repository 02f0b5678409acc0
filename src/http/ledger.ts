/** The tenant's ledger, double entry: read only. */
import { Type } from 'typebox'
import type { Deps } from '../deps.ts'
import { type BookedTransfer, listTransfers, readBalances } from '../store/ledger.ts'
import type { App } from './app-type.ts'
import { admit, callerOf, type KeyRing } from './auth.ts'
import * as contract from './contract/ledger.ts'
import { listPage, pageFrom, pageProperties } from './paging.ts'

const order = { order_id: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })) }
const TransferQuery = Type.Object({ ...pageProperties, ...order }, { additionalProperties: false })
const BalanceQuery = Type.Object(order, { additionalProperties: false })

export function ledgerRoutes(app: App, deps: Deps, ring: KeyRing): void {
  const backend = admit(ring, 'backend')

  app.get(
    '/v1/ledger/transfers',
    { preParsing: backend, schema: { ...contract.listTransfers, querystring: TransferQuery } },
    async (request) => {
      const page = pageFrom(request.query)
      const transfers = await listTransfers(deps.db, callerOf(request).tenantId, page, request.query.order_id)
      return listPage(transfers, page, transferView, (transfer) => transfer.transfer_id)
    },
  )

  app.get(
    '/v1/ledger/balances',
    { preParsing: backend, schema: { ...contract.listBalances, querystring: BalanceQuery } },
    async (request) => {
      const balances = await readBalances(deps.db, callerOf(request).tenantId, request.query.order_id)
      const data = balances.map(({ account, currency, balance }) => ({ account, currency, balance }))
      return { object: 'list' as const, data, has_more: false, next_cursor: null }
    },
  )
}

function transferView(transfer: BookedTransfer) {
  return {
    id: transfer.transfer_id,
    object: 'transfer' as const,
    kind: transfer.kind,
    debit_account: transfer.debit_account,
    credit_account: transfer.credit_account,
    amount: transfer.amount,
    currency: transfer.currency,
    order_id: transfer.order_id,
    created_at: transfer.created_at.toISOString(),
  }
}
