/** One story that the contract's examples tell. */

export const at = '2026-11-30T09:15:27.381Z'
export const orderId = 'ord_01k0f5x2v8e7wts3z9q4m6c1ab'
export const customerId = 'cus_2n4d8v0yqk9f1brg7s3w5hx6tz'
export const runId = 'run_01k0f5x2v8e7wts3z9q4m6c1ab'

export const paidOrder = {
  id: orderId,
  object: 'order',
  status: 'paid',
  currency: 'EUR',
  total: 5000,
  captured: 5000,
  refunded: 0,
  disputed: false,
  lines: [
    { sku: 'mug', name: 'Mug', quantity: 2, unit_price: 1250, amount: 2500 },
    { sku: 'tee', name: 'T-shirt', quantity: 1, unit_price: 2500, amount: 2500 },
  ],
  customer_id: customerId,
  payment: { provider: 'stripe', reference: 'pi_3QxYk2', status: 'succeeded' },
  created_at: at,
  updated_at: at,
}

export const heldOrder = {
  ...paidOrder,
  status: 'authorized',
  captured: 0,
  payment: { ...paidOrder.payment, status: 'requires_capture', capture_before: '2026-12-07T09:15:27.000Z' },
}

export const waitingOrder = {
  ...paidOrder,
  status: 'requires_action',
  captured: 0,
  payment: { ...paidOrder.payment, status: 'requires_action', client_secret: 'pi_3QxYk2_secret_example' },
}

export const unclearOrder = {
  ...paidOrder,
  status: 'needs_reconcile',
  captured: 0,
  payment: { provider: 'stripe', reference: null, status: null },
  reconcile_reason: 'timeout',
}

export const canceledOrder = {
  ...paidOrder,
  status: 'canceled',
  captured: 0,
  payment: { ...paidOrder.payment, status: 'canceled' },
}

export const activeRun = {
  id: runId,
  object: 'run',
  status: 'active',
  order_id: orderId,
  currency: 'EUR',
  hold_amount: 500,
  used_amount: 36,
  captured: 0,
  usage: [{ meter_type: 'input_tokens', quantity: 120000, amount: 36 }],
  created_at: at,
}

export function pageOf(...data: unknown[]) {
  return { object: 'list', data, has_more: false, next_cursor: null }
}
