/** Test cards. In a real shop, the provider's script collects the card and gives such a name for it. */

interface Card {
  /** `payment_method` of a checkout. */
  id: string
  label: string
  behaviour: string
}

export const cards: readonly Card[] = [
  { id: 'pm_card_visa', label: 'Visa ending in 4242', behaviour: 'Pays' },
  { id: 'pm_card_mastercard', label: 'Mastercard ending in 4444', behaviour: 'Pays' },
  { id: 'pm_card_threeDSecure2Required', label: 'Visa ending in 3220', behaviour: 'Your bank asks you first' },
  { id: 'pm_card_chargeDeclined', label: 'Visa ending in 0002', behaviour: 'Is declined' },
  {
    id: 'pm_card_chargeDeclinedInsufficientFunds',
    label: 'Visa ending in 9995',
    behaviour: 'Is declined: not enough money',
  },
  {
    id: 'pm_card_authenticationRequiredChargeDeclinedInsufficientFunds',
    label: 'Visa ending in 3178',
    behaviour: 'Your bank asks, then it is declined',
  },
]
