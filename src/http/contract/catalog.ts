/** Contract of the catalog. */
import { pageOf } from './examples.ts'
import { operation } from './operation.ts'
import { amount, count, currency, named, object, page, text, words } from './schema.ts'

const ProductSchema = named(
  'Product',
  object({
    object: words('product'),
    sku: text,
    name: text,
    unit_price: amount,
    currency,
    available: { ...count, description: 'what can be sold now' },
  }),
)

const mug = { object: 'product', sku: 'mug', name: 'Mug', unit_price: 1250, currency: 'EUR', available: 100000 }
const theProduct = { body: ProductSchema, examples: { mug } }

export const listProducts = operation({
  operationId: 'listProducts',
  tag: 'Catalog',
  summary: 'Products, by SKU',
  answers: {
    200: {
      description: 'A page of products.',
      body: page('ProductList', ProductSchema),
      examples: { page: pageOf(mug) },
    },
  },
})

export const readProduct = operation({
  operationId: 'readProduct',
  tag: 'Catalog',
  summary: 'One product',
  answers: { 200: { description: 'The product.', ...theProduct } },
  problems: ['not_found'],
})

export const putProduct = operation({
  operationId: 'putProduct',
  bodies: { mug: { name: 'Mug', unit_price: 1250, currency: 'EUR', available: 100000 } },
  tag: 'Catalog',
  summary: 'Create or replace a product',
  description: '`available` is what can be sold from now on; what open orders have reserved is not part of it.',
  answers: { 200: { description: 'The product as it is now.', ...theProduct } },
  problems: ['currency_mismatch', 'amount_not_chargeable'],
})
