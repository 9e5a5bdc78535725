# The same encoded, for asn1rt_nif:decode_ber_tlv/1.
fn size ->
  [:asn1rt_nif.encode_ber_tlv({16, List.duplicate({4, "sixteen bytes..."}, max(1, div(size, 16)))})]
end
