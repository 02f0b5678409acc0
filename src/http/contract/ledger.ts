/** Contract of the ledger. */
import { at, orderId, pageOf } from './examples.ts'
import { operation } from './operation.ts'
import { amount, currency, id, moment, named, object, page, text, words } from './schema.ts'

const TransferSchema = named(
  'Transfer',
  object({
    id: id('tra'),
    object: words('transfer'),
    kind: text,
    debit_account: text,
    credit_account: text,
    amount,
    currency,
    order_id: id('ord'),
    created_at: moment,
  }),
)

const BalanceSchema = named(
  'Balance',
  object({
    account: text,
    currency,
    balance: { type: 'integer', description: 'minor units; debits less credits' },
  }),
)

export const listTransfers = operation({
  operationId: 'listTransfers',
  tag: 'Ledger',
  summary: 'Transfers, newest first',
  answers: {
    200: {
      description: 'A page of transfers.',
      body: page('TransferList', TransferSchema),
      examples: {
        page: pageOf({
          id: 'tra_01k0f5x4n2f6ztr9c8v1y7h3wk',
          object: 'transfer',
          kind: 'capture',
          debit_account: 'provider_balance',
          credit_account: 'sales',
          amount: 5000,
          currency: 'EUR',
          order_id: orderId,
          created_at: at,
        }),
      },
    },
  },
})

export const listBalances = operation({
  operationId: 'listBalances',
  tag: 'Ledger',
  summary: 'Balances by account and currency, of all orders or of one',
  answers: {
    200: {
      description: 'All balances; those of one currency sum to nothing.',
      body: page('BalanceList', BalanceSchema),
      examples: {
        page: pageOf(
          { account: 'provider_balance', currency: 'EUR', balance: 5000 },
          { account: 'sales', currency: 'EUR', balance: -5000 },
        ),
      },
    },
  },
})
