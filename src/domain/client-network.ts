/** Where a request came from, as one customer's share: an IPv4 address, or the /64 of IPv6 that a customer's network has
 * to itself (RFC 6177). */
import ipaddr from 'ipaddr.js'

/** `ip` as the socket or a trusted proxy says. */
export function clientNetwork(ip: string): string {
  const address = ipaddr.process(ip)
  if (address.kind() === 'ipv4') return address.toString()
  return (address as ipaddr.IPv6).parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')
}
