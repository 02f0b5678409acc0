/** What the provider notifies over the life of a dispute, in its own order: type and status. */
export const disputeLives: Record<'won' | 'lost' | 'warning closed', readonly (readonly [string, string])[]> = {
  won: [
    ['charge.dispute.created', 'needs_response'],
    ['charge.dispute.funds_withdrawn', 'needs_response'],
    ['charge.dispute.updated', 'under_review'],
    ['charge.dispute.funds_reinstated', 'won'],
    ['charge.dispute.closed', 'won'],
  ],
  lost: [
    ['charge.dispute.created', 'warning_needs_response'],
    ['charge.dispute.updated', 'needs_response'],
    ['charge.dispute.funds_withdrawn', 'needs_response'],
    ['charge.dispute.closed', 'lost'],
  ],
  'warning closed': [
    ['charge.dispute.created', 'warning_needs_response'],
    ['charge.dispute.updated', 'warning_under_review'],
    ['charge.dispute.closed', 'warning_closed'],
  ],
}
