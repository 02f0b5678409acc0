/** What someone who has just started the demo wants to know. */
import { demoKeys } from './store/demo.ts'

export function welcome(url: string): string {
  return `
Checkout listens on ${url}

  storefront key  ${demoKeys.storefront}
  backend key     ${demoKeys.backend}
  admin key       ${demoKeys.admin}

  a shop          ${url}/shop
  operators       ${url}/admin
  the API         ${url}/docs

Try a double submit; both answers are the same order:

  for i in 1 2; do
    curl -si ${url}/v1/checkouts \\
      -H 'Authorization: Bearer ${demoKeys.storefront}' \\
      -H 'Idempotency-Key: my-first-attempt' \\
      -H 'Content-Type: application/json' \\
      -d '{"items":[{"sku":"mug","quantity":2}],"customer":{"email":"ada@example.com"},"payment_method":"pm_card_visa"}'
    echo
  done
`
}
